"""metrics/evaluate.json of two commits: `dvc metrics diff` and `vcppo compare` speak of the same numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.evaluate import measure
from tasks.evaluation.benchmarks import Benchmark
from tests.toy import commit, environment, git
from training.generation.shard_files import rollout_schema
from vcppo.comparison import compare, read_samples
from vcppo.config.base import SamplingConfig
from vcppo.files import write_json_atomic

ROOT = Path(__file__).resolve().parents[2]
SEED = 3
UNTRAINED = [[0, 0, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]] * 4
FIRST = [[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 0, 1]] * 4
SECOND = [[1, 1, 1, 1], [0, 0, 1, 0], [1, 0, 1, 1]] * 4


def samples(scores: list[list[int]]) -> list[dict[str, Any]]:
    """As stage evaluate stores them."""
    return [
        {
            "id": f"aime/{question:02}",
            "data_source": "aime",
            "grader": "aime",
            "sample": sample,
            "gold": "42",
            "status": "right" if score else "wrong",
            "answer": "42" if score else "7",
            "finish_reason": "stop",
            "num_response_tokens": 10 + sample,
            "prompt_hash": f"hash of {question}",
            "engine": "torch",
            "engine_version": "2",
            "dtype": "float32",
            "batch_size": 8,
            "seed": SEED,
            "temperature": 1.0,
            "top_p": 1.0,
            "top_k": 0,
            "max_response_tokens": 64,
        }
        for question, own in enumerate(scores)
        for sample, score in enumerate(own)
    ]


def dvc(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "dvc", *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_dvc_metrics_diff_finds_the_numbers_that_compare_and_the_metrics_file_have(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    dvc(tmp_path, "init", "-q")
    (tmp_path / "dvc.yaml").write_text((ROOT / "dvc.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    benchmark = Benchmark("aime", (), 4, SamplingConfig(), 64, (1, 4), 0.02)
    found, commits = [], []
    for number, scores in enumerate((FIRST, SECOND)):
        drawn = {"before": {"aime": samples(UNTRAINED)}, "after": {"aime": samples(scores)}}
        found.append(measure(drawn, [benchmark], SEED))
        (tmp_path / "metrics").mkdir(exist_ok=True)
        write_json_atomic(tmp_path / "metrics/evaluate.json", found[-1])
        table = pa.Table.from_pylist(drawn["after"]["aime"], schema=rollout_schema())
        pq.write_table(table, tmp_path / f"{number}.parquet")
        commits.append(commit(tmp_path, f"Evaluation {number}"))

    diff = json.loads(dvc(tmp_path, "metrics", "diff", "--json", *commits))["metrics/evaluate.json"]
    of_samples = [read_samples(tmp_path / f"{number}.parquet") for number in (0, 1)]
    compared = compare(*of_samples, seed=SEED)["aime"]
    average = diff["after.aime.average_at_k"]
    assert (average["old"], average["new"]) == (compared["average_a"], compared["average_b"])
    assert average["diff"] == pytest.approx(compared["difference"], abs=1e-12)
    assert compared["difference"] > 0.1
    # every number that changed is there with both its values, and none that did not
    before, after = (dict(leaves(metrics)) for metrics in found)
    changed = {name for name in before if before[name] != after[name]}
    assert {"after.aime.pass_at_4", "difference.aime.difference", "difference.aime.low"} <= changed
    assert set(diff) == {name for name in changed if not isinstance(before[name], list)}
    assert all((diff[name]["old"], diff[name]["new"]) == (before[name], after[name]) for name in diff)


def leaves(metrics: Any, prefix: str = "") -> Any:
    """(dotted name, value) of everything in a metrics file."""
    for name, value in metrics.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
