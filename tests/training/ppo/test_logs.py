"""metrics.jsonl holds each step once; the follower shows only the lines meant for a person."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from training.ppo.log_follower import LogFollower
from training.ppo.metrics_log import append_metrics, read_metrics, truncate_metrics


def test_metrics_survive_a_torn_line_and_a_resume(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    for step in (1, 2, 3):
        append_metrics(path, step, {"loss": step / 2})
    with path.open("a") as stream:
        stream.write('{"step": 4, "lo')
    assert [line["step"] for line in read_metrics(path)] == [1, 2, 3]
    truncate_metrics(path, 2)
    append_metrics(path, 3, {"loss": 9.0})
    assert [(line["step"], line["loss"]) for line in read_metrics(path)] == [(1, 0.5), (2, 1.0), (3, 9.0)]


def test_non_finite_metrics_become_null(tmp_path: Path) -> None:
    append_metrics(tmp_path / "m.jsonl", 1, {"a": float("nan"), "b": float("inf"), "c": -0.0})
    line = json.loads((tmp_path / "m.jsonl").read_text())
    assert line == {"step": 1, "a": None, "b": None, "c": 0.0}


def test_follower_shows_new_lines_of_its_prefixes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "trainer.log"
    log.write_text("STEP 1/9 old\n")
    with LogFollower(log), log.open("a") as stream:
        stream.write("STEP 2/9 shown\nnoise of a library\nSTART ready\nSTEP 3/9 not yet whol")
    assert capsys.readouterr().out.splitlines() == ["[train] STEP 2/9 shown", "[train] START ready"]
