"""Stage prepare: problems of the declared sources to verl-schema parquet, SFT traces and a dataset card."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.sources import read_source
from tasks.sources.cleaning import Gold, clean, comparison_key, split
from tasks.sources.ledger import Ledger
from tasks.sources.problem import Problem, order_key
from tasks.stage import StageContext
from vcppo.config import DataConfig
from vcppo.config.sources import FileSource, HubSource, Source
from vcppo.errors import DataError
from vcppo.files import sha256_file, write_json_atomic
from vcppo.records import Artifact

if TYPE_CHECKING:
    import pyarrow as pa

OUTPUT = "data/prepared"
ABILITY = {"aime": "math", "math": "math", "gpqa": "science"}

Placed = tuple[Source, Gold]


def run(context: StageContext) -> dict[str, int]:
    """Write train.parquet, eval.parquet, sft.parquet and card.json. Returns their numbers of rows.

    Raises DataError if a source is missing or malformed, or if nothing is left to train or to evaluate on.
    """
    data = context.config.data
    ledgers = {source.name: Ledger() for source in data.sources}
    train, evaluation = collect(context, ledgers)
    _require(train, "to train on", "`use: train` or `use: split`", ledgers)
    _require(evaluation, "to evaluate on", "`use: eval`, or `use: split` with an eval_count", ledgers)
    out = context.out(OUTPUT)
    out.mkdir(parents=True, exist_ok=True)
    tables = {
        "train.parquet": verl_table(train, "train", data),
        "eval.parquet": verl_table(evaluation, "eval", data),
        "sft.parquet": sft_table(train, data),
    }
    for name, table in tables.items():
        write_parquet(table, out / name)
    write_json_atomic(out / "card.json", card(context, ledgers, tables, train, evaluation))
    counts = {f"{name.removesuffix('.parquet')}_rows": table.num_rows for name, table in tables.items()}
    context.say(", ".join(f"{name} {count}" for name, count in counts.items()))
    return counts


def collect(context: StageContext, ledgers: dict[str, Ledger]) -> tuple[list[Placed], list[Placed]]:
    """Training and evaluation problems of all sources, each list in the order of id hashes.

    Records every source that was read. A prompt that two sources share stays with the one that evaluates,
    else with the one declared first.
    """
    sources = context.config.data.sources
    train: list[Placed] = []
    evaluation: list[Placed] = []
    owners: dict[str, Source] = {}
    for source in sorted(sources, key=lambda source: source.use != "eval"):
        ledger = ledgers[source.name]
        digest = hashlib.sha256()
        golds = clean(source, _digested(context, read_source(source, context.config.seed), digest), ledger)
        context.sources.append(source_artifact(source, context.config.seed, digest.hexdigest()))
        golds = [gold for gold in golds if _first_owner(gold, source, owners, ledger)]
        for placed, part in zip((train, evaluation), split(source, golds, ledger), strict=True):
            placed.extend((source, gold) for gold in part)
        removed = ", ".join(f"{count} {reason}" for reason, count in sorted(ledger.removed.items())) or "none"
        context.say(f"source {source.name}: {ledger.rows_in} rows, {ledger.kept()} kept; removed: {removed}")
    for placed in (train, evaluation):
        placed.sort(key=lambda item: order_key(item[1].problem.id))
    return train, evaluation


def verl_table(placed: list[Placed], split_name: str, data: DataConfig) -> pa.Table:
    """Rows in verl's schema (data/README.md), in the order given."""
    import pyarrow as pa

    message = pa.struct([("content", pa.string()), ("role", pa.string())])
    extra = [("id", pa.string()), ("split", pa.string()), ("index", pa.int64()), ("grader", pa.string())]
    schema = pa.schema(
        [
            ("data_source", pa.string()),
            ("prompt", pa.list_(message)),
            ("ability", pa.string()),
            ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
            ("extra_info", pa.struct(extra)),
        ]
    )
    rows = [
        {
            "data_source": source.name,
            "prompt": chat(gold.problem.text, data),
            "ability": ABILITY[source.grader],
            "reward_model": {"style": "rule", "ground_truth": gold.gold},
            "extra_info": {
                "id": gold.problem.id,
                "split": split_name,
                "index": index,
                "grader": source.grader,
            },
        }
        for index, (source, gold) in enumerate(placed)
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def sft_table(train: list[Placed], data: DataConfig) -> pa.Table:
    """Responses to imitate: every worked solution of the training problems."""
    import pyarrow as pa

    message = pa.struct([("content", pa.string()), ("role", pa.string())])
    schema = pa.schema([("id", pa.string()), ("prompt", pa.list_(message)), ("response", pa.string())])
    rows = [
        {"id": gold.problem.id, "prompt": chat(gold.problem.text, data), "response": trace}
        for _, gold in train
        for trace in gold.problem.traces
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def chat(problem: str, data: DataConfig) -> list[dict[str, str]]:
    """The prompt of a problem as chat messages."""
    system = [{"role": "system", "content": data.system_prompt}] if data.system_prompt is not None else []
    return [*system, {"role": "user", "content": data.prompt_template.replace("{problem}", problem)}]


def write_parquet(table: pa.Table, path: Path) -> None:
    """The same table gives the same bytes: no time, no host, no pandas metadata goes in."""
    import pyarrow.parquet as pq

    pq.write_table(table, path, compression="zstd", row_group_size=16384)


def source_artifact(source: Source, seed: int, rows_sha256: str) -> Artifact:
    """What the record says of a source: its file and hash, or the hash of the rows that it gave."""
    detail = source.model_dump(mode="json")
    if isinstance(source, FileSource):
        return Artifact(
            path=source.path,
            sha256=source.sha256,
            bytes=Path(source.path).stat().st_size,
            kind="source",
            detail=detail,
        )
    if isinstance(source, HubSource):
        where = f"hub:{source.repository}@{source.revision}"
    else:
        where, detail = f"{source.kind}:{source.name}", {**detail, "seed": seed}
    return Artifact(path=where, sha256=rows_sha256, bytes=0, kind="source", detail=detail)


def card(
    context: StageContext,
    ledgers: dict[str, Ledger],
    tables: dict[str, pa.Table],
    train: list[Placed],
    evaluation: list[Placed],
) -> dict[str, Any]:
    """The dataset card: rows in and out by reason and source, licences, hashes."""
    artifacts = {artifact.detail["name"]: artifact for artifact in context.sources}
    sources = [
        {
            "name": source.name,
            "kind": source.kind,
            "origin": artifacts[source.name].path,
            "sha256": artifacts[source.name].sha256,
            "licence": source.licence,
            "grader": source.grader,
            "use": source.use,
            "rows_in": ledgers[source.name].rows_in,
            "removed": dict(sorted(ledgers[source.name].removed.items())),
            "listed": ledgers[source.name].listed,
            "train_rows": sum(other is source for other, _ in train),
            "eval_rows": sum(other is source for other, _ in evaluation),
        }
        for source in context.config.data.sources
    ]
    out = context.out(OUTPUT)
    files = {
        name: {
            "rows": table.num_rows,
            "bytes": (out / name).stat().st_size,
            "sha256": sha256_file(out / name),
        }
        for name, table in tables.items()
    }
    return {"seed": context.config.seed, "sources": sources, "files": files}


def _digested(context: StageContext, problems: Iterable[Problem], digest: Any) -> Iterator[Problem]:
    for number, problem in enumerate(problems, 1):
        digest.update(f"{problem.id}\0{problem.text}\0{problem.answer}\0".encode())
        yield problem
        if number % 20000 == 0:
            context.say(f"{number} rows read")


def _first_owner(gold: Gold, source: Source, owners: dict[str, Source], ledger: Ledger) -> bool:
    owner = owners.setdefault(comparison_key(gold.problem.text), source)
    if owner is source:
        return True
    ledger.remove("duplicate_of_other_source", id=gold.problem.id, other_source=owner.name)
    return False


def _require(placed: list[Placed], purpose: str, way_out: str, ledgers: dict[str, Ledger]) -> None:
    if placed:
        return
    counts = "; ".join(
        f"{name}: {ledger.rows_in} rows"
        + "".join(f", {count} {reason}" for reason, count in sorted(ledger.removed.items()))
        for name, ledger in ledgers.items()
    )
    raise DataError(f"data.sources: no problem is left {purpose} ({counts}); give a source with {way_out}")
