"""From the clean problems of each source to one training and one evaluation set that share nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tasks.sources.agreement import meant, one_value
from tasks.sources.cleaning import Gold, split
from tasks.sources.contamination import BenchmarkIndex
from tasks.sources.ledger import Ledger
from tasks.sources.mixture import balanced
from tasks.sources.near_duplicates import without_near_duplicates
from tasks.sources.problem import order_key
from tasks.sources.words import comparison_key, layout_key
from vcppo.config import DataConfig
from vcppo.config.sources import GeneratedSource, Source

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

    In this order: a prompt that got different golds, layout apart, is dropped everywhere, unless the
    benchmarks agree on its gold: theirs stays; a prompt that two sources share stays with the one that only
    evaluates, else with the one declared first; near-duplicates among what may be trained
    on; hold-out; decontamination of the training set against everything that is evaluated; balance. Raises
    DataError as `split` and `balanced` do.
    """
    sources = sorted(data.sources, key=lambda source: source.use != "eval")
    pools = _exactly_unique(sources, _without_conflicts(sources, clean, ledgers), ledgers)
    if data.near_duplicate_similarity is not None:
        searched = {
            source.name: (source.grader, pools[source.name])
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


def _without_conflicts(
    sources: list[Source], clean: Mapping[str, list[Gold]], ledgers: dict[str, Ledger]
) -> dict[str, list[Gold]]:
    """The problems of each source but those with several golds, which are listed."""
    first: dict[str, Placed] = {}
    shared: dict[str, list[Placed]] = {}
    for source in sources:
        for gold in clean[source.name]:
            key = layout_key(gold.problem.compared)
            earlier = first.setdefault(key, (source, gold))
            if earlier[1] is not gold:
                shared.setdefault(key, [earlier]).append((source, gold))
    dropped: set[int] = set()
    for group in shared.values():
        golds = [meant(gold.problem, gold.gold) for _, gold in group]
        where = [gold.problem.where for _, gold in group]
        for source, gold in _disagreeing(group):
            ledgers[source.name].remove("conflicting_gold", id=gold.problem.id, golds=golds, where=where)
            dropped.add(id(gold))
    return {name: [gold for gold in golds if id(gold) not in dropped] for name, golds in clean.items()}


def _exactly_unique(
    sources: list[Source], clean: Mapping[str, list[Gold]], ledgers: dict[str, Ledger]
) -> dict[str, list[Gold]]:
    owners: dict[str, Placed] = {}
    pools: dict[str, list[Gold]] = {}
    for source in sources:
        pools[source.name] = []
        for gold in clean[source.name]:
            owner = owners.setdefault(comparison_key(gold.problem.compared), (source, gold))
            if owner[0] is source:
                pools[source.name].append(gold)
            else:
                ledgers[source.name].remove(
                    "duplicate_of_other_source", id=gold.problem.id, other_source=owner[0].name
                )
    return pools


def _disagreeing(group: Sequence[Placed]) -> Sequence[Placed]:
    """Those of one problem's holders, benchmarks first, that must go: all of them, unless the benchmarks
    agree on a gold."""
    benchmarks = [placed for placed in group if placed[0].use == "eval"]
    if not _agree(benchmarks or group):
        return group
    return [placed for placed in group[len(benchmarks) :] if benchmarks and not _agree([group[0], placed])]


def _agree(placed: Sequence[Placed]) -> bool:
    return one_value([(meant(gold.problem, gold.gold), source.grader) for source, gold in placed])


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
