"""What the report is made of, read from a workspace. Only the evaluation must be there."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.reporting.samples import Samples, read_columns, read_samples
from vcppo.errors import DataError
from vcppo.records import RunRecord, read_record

STAGES_WITH_METRICS = ("validate", "sft", "rollouts", "reward_model", "pretrain_critic", "train")
POLICIES = ("before", "after")


@dataclass(frozen=True)
class Table:
    """A CSV file by column; every column is as long as the others."""

    columns: Mapping[str, Sequence[str]]

    def numbers(self, name: str) -> list[float | None]:
        """One column as numbers. None where a cell is empty or not finite; empty without such a column."""
        return [_number(cell) for cell in self.columns.get(name, ())]


@dataclass(frozen=True)
class Results:
    """A run as its stages left it."""

    evaluation: Mapping[str, Any]
    """metrics/evaluate.json: before, after, difference; each by benchmark."""
    metrics: Mapping[str, Mapping[str, Any]]
    """metrics/STAGE.json by stage."""
    plots: Mapping[str, Table]
    """plots/NAME.csv by name."""
    steps: Sequence[Mapping[str, Any]]
    """data/training_rollouts/metrics.jsonl, one mapping a step."""
    samples: Mapping[str, Samples]
    """Of data/evaluation/POLICY.parquet, by policy."""
    prompts: Mapping[str, str]
    """Text of the evaluation problems by id."""
    card: Mapping[str, Any]
    """data/prepared/card.json."""
    records: Mapping[str, RunRecord]
    """By stage, in the order of the pipeline."""


def read_results(records: Iterable[Path], workspace: Path = Path()) -> Results:
    """Read a workspace. records: the run records to show, relative to it; missing ones are left out.

    Raises DataError naming the file if the evaluation is missing or any file is malformed.
    """
    evaluation = read_json(workspace / "metrics/evaluate.json")
    if not all(isinstance(evaluation.get(policy), Mapping) and evaluation[policy] for policy in POLICIES):
        raise DataError(
            f"{workspace / 'metrics/evaluate.json'}: holds no evaluation of both policies, expected the keys "
            f"{' and '.join(POLICIES)} with a benchmark each; run `dvc repro evaluate` first"
        )
    read = [read_record(path) for path in (workspace / r for r in records) if path.is_file()]
    return Results(
        evaluation=evaluation,
        metrics={name: read_json(workspace / f"metrics/{name}.json") for name in STAGES_WITH_METRICS},
        plots={path.stem: read_table(path) for path in sorted((workspace / "plots").glob("*.csv"))},
        steps=read_lines(workspace / "data/training_rollouts/metrics.jsonl"),
        samples={name: read_samples(workspace / f"data/evaluation/{name}.parquet") for name in POLICIES},
        prompts=read_prompts(workspace / "data/prepared/eval.parquet"),
        card=read_json(workspace / "data/prepared/card.json"),
        records={record.stage: record for record in read},
    )


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty if there is no such file. Raises DataError if it is something else."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: is not valid JSON: {error}; run its stage again") from None
    if not isinstance(value, dict):
        raise DataError(f"{path}: holds {type(value).__name__}, expected an object; run its stage again")
    return value


def read_lines(path: Path) -> list[dict[str, Any]]:
    """A file of one JSON object a line; empty if there is no such file. Raises DataError naming the line."""
    if not path.is_file():
        return []
    lines = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            lines.append(dict(json.loads(line)))
        except (ValueError, TypeError) as error:
            raise DataError(f"{path}:{number}: is no JSON object: {error}; run its stage again") from None
    return lines


def read_table(path: Path) -> Table:
    """A CSV file with a header. Raises DataError for a row that is longer or shorter than the header."""
    with path.open(newline="", encoding="utf-8") as stream:
        rows = [row for row in csv.reader(stream) if row]
    if not rows:
        return Table({})
    header, *body = rows
    for number, row in enumerate(body, 2):
        if len(row) != len(header):
            raise DataError(
                f"{path}: row {number} has {len(row)} cells, the header has {len(header)}; "
                "run its stage again"
            )
    return Table({name: [row[index] for row in body] for index, name in enumerate(header)})


def read_prompts(path: Path) -> dict[str, str]:
    """What each problem says, by id: the messages of its prompt with their roles if there are several."""
    prompts = {}
    for row in read_columns(path, ("prompt", "extra_info")).to_pylist() if path.is_file() else ():
        messages = row["prompt"]
        plain = len(messages) == 1
        prompts[row["extra_info"]["id"]] = "\n\n".join(
            message["content"] if plain else f"{message['role']}: {message['content']}"
            for message in messages
        )
    return prompts


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
