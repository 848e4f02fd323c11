"""Stage prepare on as many rows as DAPO-Math-17k has, stage validate on as many different problems.

    python -m bench.data [ROWS]

prepare gets a parquet file of the dataset's schema and template: 17,917 generated problems, each a hundred
times. validate gets ROWS different prepared problems. Both run as stages do, in a process of their own; the
largest resident memory is that process's.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
ROWS = 1_791_700
REPEATS = 100
TARGETS = {"prepare": (180.0, 6.0), "validate": (60.0, None)}
"""Seconds and GB on two cores."""
VOCABULARY = 4000


def main(rows: int = ROWS) -> dict[str, tuple[float, float]]:
    """Measure and print; returns (seconds, GB) of each stage."""
    measured: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        for room in ("tasks", "training", "vcppo", "dvc.yaml"):
            (workspace / room).symlink_to(ROOT / room)
        raw = workspace / "dapo.parquet"
        write_raw(raw, rows)
        _configure(workspace, raw)
        print(
            f"{rows} rows of {rows // REPEATS} problems, {raw.stat().st_size / 1e6:.0f} MB of parquet",
            flush=True,
        )
        measured["prepare"] = _stage(workspace, "prepare")
        write_prepared(workspace / "data/prepared", rows)
        print(f"{rows} different prepared problems", flush=True)
        measured["validate"] = _stage(workspace, "validate")
    return measured


def problem_texts(count: int, seed: int = 1) -> Iterator[str]:
    """Different problems of about 250 characters, the median of the real dataset's."""
    generator = random.Random(seed)
    vocabulary = [
        "".join(generator.choices("abcdefghijklmnopqrstuvwxyz", k=generator.randint(2, 9)))
        for _ in range(VOCABULARY)
    ]
    for number in range(count):
        sentence = " ".join(generator.choices(vocabulary, k=38))
        yield f"Problem {number}: let $x = {generator.randint(1, 999)}$. {sentence} $x^2 + {number % 97}$?"


def write_raw(path: Path, rows: int) -> None:
    """A file of the dataset's schema: every problem `REPEATS` times, in as many rounds."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tasks.sources.catalogue import DAPO_TEMPLATES

    template = DAPO_TEMPLATES[0]
    table = pa.Table.from_pylist(
        [
            {
                "data_source": "math_dapo",
                "prompt": [{"content": template.prefix + text + template.suffix, "role": "user"}],
                "ability": "MATH",
                "reward_model": {"ground_truth": str(number % 1000), "style": "rule-lighteval/MATH_v2"},
                "extra_info": {"index": hashlib.sha256(text.encode()).hexdigest()[:32]},
            }
            for number, text in enumerate(problem_texts(rows // REPEATS))
        ]
    )
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(REPEATS):
            writer.write_table(table)


def write_prepared(folder: Path, rows: int) -> None:
    """Prepared files with `rows` different problems, as the stage would leave them."""
    from tasks.sources.cleaning import Gold
    from tasks.sources.problem import Problem, problem_id
    from tasks.sources.tables import sft_table, verl_table, write_parquet
    from vcppo.config import load_params

    data = load_params(folder.parents[1] / "params.yaml").data
    train, evaluation = data.sources[0], data.sources[1]
    for name, source, count, seed in (("train", train, rows - 30, 1), ("eval", evaluation, 30, 2)):
        texts = problem_texts(count, seed)
        placed = [
            (
                source,
                Gold(
                    Problem(problem_id(source.name, text), text, str(number % 1000), ""), str(number % 1000)
                ),
            )
            for number, text in enumerate(texts)
        ]
        write_parquet(verl_table(placed, name, data), folder / f"{name}.parquet")
    write_parquet(sft_table([], data), folder / "sft.parquet")


def _configure(workspace: Path, raw: Path) -> None:
    digest = hashlib.sha256(raw.read_bytes()).hexdigest()
    values: dict[str, Any] = yaml.safe_load((ROOT / "profiles/tiny.yaml").read_text(encoding="utf-8"))
    values["data"] = {
        "sources": [
            {
                "kind": "file",
                "name": "dapo",
                "path": str(raw),
                "sha256": digest,
                "dataset": "dapo_math_17k",
                "use": "train",
            },
            {"kind": "running_sum", "name": "bench", "use": "eval", "num_problems": 30},
        ],
        "max_prompt_tokens": 600,
        "max_response_tokens": 600,
    }
    (workspace / "params.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")


def _stage(workspace: Path, name: str) -> tuple[float, float]:
    """Seconds and largest resident GB of one stage."""
    start = time.perf_counter()
    # a child of its own, so that ru_maxrss of the waited-for process is this stage's alone
    process = subprocess.Popen(
        [sys.executable, "-m", "tasks", name], cwd=workspace, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"stage {name} ended with exit code {process.returncode}")
    seconds = time.perf_counter() - start
    gigabytes = usage.ru_maxrss * 1024 / 1e9  # Linux counts KiB
    most_seconds, most_gigabytes = TARGETS[name]
    limit = f"{most_seconds:.0f} s" + (f", {most_gigabytes:.0f} GB" if most_gigabytes else "")
    print(
        f"{name}: {seconds:.1f} s, {gigabytes:.2f} GB resident (at most {limit} for {ROWS} rows)", flush=True
    )
    return seconds, gigabytes


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
