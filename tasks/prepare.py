"""Stage prepare: problems of the declared sources to verl-schema parquet, SFT traces and a dataset card."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from tasks.sources import read_source
from tasks.sources.assembly import Assembled, Placed, assemble
from tasks.sources.card import dataset_card
from tasks.sources.cleaning import Gold, clean
from tasks.sources.hub import repository_of
from tasks.sources.ledger import Ledger
from tasks.sources.problem import Problem
from tasks.sources.tables import sft_table, verl_table, write_parquet
from tasks.stage import StageContext
from vcppo.config.sources import FileSource, HubSource, Source
from vcppo.errors import DataError
from vcppo.files import write_json_atomic
from vcppo.records import Artifact
from vcppo.workspace import checkout_root

OUTPUT = "data/prepared"


def run(context: StageContext) -> dict[str, int]:
    """Write train.parquet, eval.parquet, sft.parquet and card.json. Returns their numbers of rows.

    Raises DataError if a source is missing or malformed, or if nothing is left to train or to evaluate on.
    """
    config = context.config
    ledgers = {source.name: Ledger() for source in config.data.sources}
    golds = {source.name: _read(context, source, ledgers[source.name]) for source in config.data.sources}
    assembled = assemble(golds, config.data, ledgers, context.progress)
    _report(context, assembled, ledgers)
    out = context.out(OUTPUT)
    out.mkdir(parents=True, exist_ok=True)
    tables = {
        "train.parquet": verl_table(assembled.train, "train", config.data),
        "eval.parquet": verl_table(assembled.evaluation, "eval", config.data),
        "sft.parquet": sft_table(assembled.train, config.data),
    }
    for name, table in tables.items():
        write_parquet(table, out / name)
    card = dataset_card(
        config.data,
        config.seed,
        assembled,
        ledgers,
        {artifact.detail["name"]: artifact for artifact in context.sources},
        {name: (out / name, table.num_rows) for name, table in tables.items()},
    )
    write_json_atomic(out / "card.json", card)
    counts = {f"{name.removesuffix('.parquet')}_rows": table.num_rows for name, table in tables.items()}
    context.say(", ".join(f"{name} {count}" for name, count in counts.items()))
    return counts


def source_artifact(source: Source, seed: int, rows_sha256: str) -> Artifact:
    """What the record says of a source: its file and hash, or the hash of the rows that it gave."""
    detail = source.model_dump(mode="json")
    if isinstance(source, FileSource):
        size = (checkout_root() / source.path).stat().st_size
        return Artifact(path=source.path, sha256=source.sha256, bytes=size, kind="source", detail=detail)
    if isinstance(source, HubSource):
        where = f"hub:{repository_of(source)}@{source.revision}"
    else:
        where, detail = f"{source.kind}:{source.name}", {**detail, "seed": seed}
    return Artifact(path=where, sha256=rows_sha256, bytes=0, kind="source", detail=detail)


def _read(context: StageContext, source: Source, ledger: Ledger) -> list[Gold]:
    """The source's clean problems; the source goes into the record. Raises DataError if it is empty."""
    digest = hashlib.sha256()
    seed = context.config.seed
    golds = clean(source, _digested(context, read_source(source, seed), digest), ledger)
    if ledger.rows_in == 0:
        raise DataError(f"source {source.name}: is empty: not a single problem; mend it or take it out")
    context.sources.append(source_artifact(source, seed, digest.hexdigest()))
    return golds


def _digested(context: StageContext, problems: Iterable[Problem], digest: Any) -> Iterator[Problem]:
    for number, problem in enumerate(problems, 1):
        digest.update(f"{problem.id}\0{problem.compared}\0{problem.answer}\0".encode())
        yield problem
        if number % 200_000 == 0:
            context.say(f"{number} rows read")


def _report(context: StageContext, assembled: Assembled, ledgers: dict[str, Ledger]) -> None:
    """Say what each source gave. Raises DataError unless there is something to train and to evaluate on."""
    lines = [
        f"{name}: {ledger.rows_in} rows"
        + "".join(f", {count} {reason}" for reason, count in sorted(ledger.removed.items()))
        for name, ledger in ledgers.items()
    ]
    for line in lines:
        context.say(f"source {line}")
    needs: tuple[tuple[list[Placed], str], ...] = (
        (assembled.train, "to train on: give a source with `use: train` or `use: split`"),
        (
            assembled.evaluation,
            "to evaluate on: give a source with `use: eval`, or `use: split` and an eval_count",
        ),
    )
    for placed, need in needs:
        if not placed:
            raise DataError(
                f"data.sources: no problem is left {need}. What became of the rows: {'; '.join(lines)}"
            )
