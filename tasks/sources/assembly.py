"""From the clean problems of each source to one training and one evaluation set that share nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tasks.sources.cleaning import Gold, split
from tasks.sources.contamination import BenchmarkIndex
from tasks.sources.ledger import Ledger
from tasks.sources.mixture import balanced
from tasks.sources.near_duplicates import without_near_duplicates
from tasks.sources.problem import order_key
from tasks.sources.words import comparison_key
from vcppo.config import DataConfig
from vcppo.config.sources import GeneratedSource, Source
from vcppo.grading import grade

Placed = tuple[Source, Gold]
Progress = Callable[[int, int, str], None]
"""Called with what is done, the total, and what it is."""


@dataclass
class Assembled:
    """Both sets, each in the order of id hashes."""

    train: list[Placed] = field(default_factory=list)
    evaluation: list[Placed] = field(default_factory=list)


def assemble(
    clean: Mapping[str, list[Gold]], data: DataConfig, ledgers: dict[str, Ledger], progress: Progress
) -> Assembled:
    """Mix the sources. clean: each source's clean problems, by its name.

    In this order: a prompt that two sources share stays with the one that only evaluates, else with the one
    declared first, and with none if they give it different golds; near-duplicates among what may be trained
    on; hold-out; decontamination of the training set against everything that is evaluated; balance. Raises
    DataError as `split` and `balanced` do.
    """
    sources = sorted(data.sources, key=lambda source: source.use != "eval")
    pools = _exactly_unique(sources, clean, ledgers)
    if data.near_duplicate_similarity is not None:
        searched = {
            source.name: pools[source.name]
            for source in sources
            # two problems of a generator differ in their numbers only, which is what makes them two
            if source.use != "eval" and not isinstance(source, GeneratedSource)
        }
        if searched:
            pools |= without_near_duplicates(
                searched,
                ledgers,
                data.near_duplicate_similarity,
                lambda done, total: progress(done, total, "compared with each other"),
            )
    train: dict[str, list[Gold]] = {}
    result = Assembled()
    for source in data.sources:
        train[source.name], held_out = split(source, pools[source.name], ledgers[source.name])
        result.evaluation += [(source, gold) for gold in held_out]
    train = _decontaminated(train, result.evaluation, data.contamination_coverage, ledgers, progress)
    if data.max_source_share is not None:
        train = _balanced(train, data.max_source_share, ledgers)
    result.train = [(source, gold) for source in data.sources for gold in train[source.name]]
    for placed in (result.train, result.evaluation):
        placed.sort(key=lambda item: order_key(item[1].problem.id))
    return result


def _exactly_unique(
    sources: list[Source], clean: Mapping[str, list[Gold]], ledgers: dict[str, Ledger]
) -> dict[str, list[Gold]]:
    owners: dict[str, tuple[Source, Gold]] = {}
    conflicts: dict[str, list[Placed]] = {}
    pools: dict[str, list[Gold]] = {}
    for source in sources:
        pools[source.name] = []
        for gold in clean[source.name]:
            key = comparison_key(gold.problem.compared)
            owner, owned = owners.setdefault(key, (source, gold))
            if owner is source:
                pools[source.name].append(gold)
            elif owner.use == "eval" or _same_gold((owner, owned), (source, gold)):
                ledgers[source.name].remove(
                    "duplicate_of_other_source", id=gold.problem.id, other_source=owner.name
                )
            else:
                conflicts.setdefault(key, [(owner, owned)]).append((source, gold))
    for conflict in conflicts.values():
        golds = [gold.gold for _, gold in conflict]
        where = [gold.problem.where for _, gold in conflict]
        for source, gold in conflict:
            ledgers[source.name].remove("conflicting_gold", id=gold.problem.id, golds=golds, where=where)
    dropped = {id(gold) for conflict in conflicts.values() for _, gold in conflict}
    return {name: [gold for gold in pool if id(gold) not in dropped] for name, pool in pools.items()}


def _same_gold(one: Placed, other: Placed) -> bool:
    (source, gold), (_, other_gold) = one, other
    if gold.gold == other_gold.gold:
        return True
    return grade(f"\\boxed{{{other_gold.gold}}}", gold.gold, source.grader).status == "right"


def _decontaminated(
    train: dict[str, list[Gold]],
    evaluation: list[Placed],
    coverage: float | None,
    ledgers: dict[str, Ledger],
    progress: Progress,
) -> dict[str, list[Gold]]:
    index = BenchmarkIndex((gold.problem.id, gold.problem.compared) for _, gold in evaluation)
    total = sum(map(len, train.values()))
    done = 0
    kept: dict[str, list[Gold]] = {}
    for name, golds in train.items():
        kept[name] = []
        for gold in golds:
            overlap = index.overlap(gold.problem.compared, coverage)
            if overlap is None:
                kept[name].append(gold)
            else:
                ledgers[name].remove(
                    "benchmark_overlap",
                    id=gold.problem.id,
                    benchmark_id=overlap.benchmark_id,
                    coverage=round(overlap.coverage, 3),
                )
            done += 1
            progress(done, total, "compared with the benchmarks")
    return kept


def _balanced(
    train: dict[str, list[Gold]], max_share: float, ledgers: dict[str, Ledger]
) -> dict[str, list[Gold]]:
    quotas = balanced({name: len(golds) for name, golds in train.items() if golds}, max_share)
    for name, golds in train.items():
        surplus = len(golds) - quotas.get(name, 0)
        if surplus:
            ledgers[name].remove("over_source_share", surplus)
    return {name: golds[: quotas.get(name, 0)] for name, golds in train.items()}
