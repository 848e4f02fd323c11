"""Each guard ends a run that goes wrong in its way, and leaves healthy runs alone."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from training.ppo.guard_rules import FINITE
from training.ppo.guards import Guards, Trip, write_failure
from training.ppo.metrics_log import append_metrics, read_metrics
from vcppo import errors
from vcppo.config.train import GuardsConfig, RewardConfig
from vcppo.errors import DivergenceError

Metrics = dict[str, Any]


def healthy(step: int) -> Metrics:
    """A step of a run as the tiny profile has it: from half right and short to nearly all right and long."""
    accuracy = min(0.98, 0.55 + 0.04 * step)
    return {
        "actor/pg_loss": 0.01,
        "actor/grad_norm": 0.4,
        "actor/entropy_loss": 0.3 - 0.01 * step,
        "actor/ppo_kl": 0.002,
        "critic/vf_loss": 0.3,
        "critic/grad_norm": 1.2,
        "critic/value_mean": 2 * accuracy - 1,
        "critic/value_bias": 0.05,
        # stopping is hard to foresee: near zero, and far below it once nearly all are right
        "critic/explained_variance": -0.04 if accuracy < 0.95 else -6.0,
        "critic/score/min": -1.0,
        "critic/score/max": 1.0,
        "response/accuracy": accuracy,
        "response/length": 61 + 1.5 * step,
        "response/length_right": 80.0,
        "response/length_wrong": 42.0,
    }


def guards(**config: Any) -> Guards:
    return Guards(GuardsConfig(**config), RewardConfig())


def run(watch: Guards, steps: Iterable[Metrics], first: int = 1) -> tuple[int, Trip] | None:
    """The first guard that stops the run, with the number of the step."""
    for step, metrics in enumerate(steps, start=first):
        for trip in watch.observe(step, metrics):
            if trip.stops:
                return step, trip
    return None


def from_step(bad: int, change: Callable[[int], Metrics], length: int = 30) -> list[Metrics]:
    """Healthy steps, changed from step `bad` on."""
    return [healthy(s) | (change(s) if s >= bad else {}) for s in range(1, length + 1)]


def all_right(step: int) -> Metrics:
    return {
        "critic/score/min": 1.0,
        "critic/explained_variance": math.nan,
        "response/accuracy": 1.0,
        "response/length_wrong": None,
    }


def all_wrong(step: int) -> Metrics:
    return {"critic/score/max": -1.0, "critic/explained_variance": math.nan, "response/accuracy": 0.0}


def without_actor(metrics: Metrics) -> Metrics:
    return {key: value for key, value in metrics.items() if not key.startswith("actor/")}


def improved(step: int) -> Metrics:
    """From 0.1 to 0.8, then short and mostly wrong."""
    length = 60.0 if step < 15 else 6.0
    return {
        "response/length": length,
        "response/length_right": length,
        "response/length_wrong": length,
        "response/accuracy": min(0.8, 0.1 * step) if step < 15 else 0.15,
        "critic/explained_variance": -0.1,
    }


HEALTHY: dict[str, list[Metrics]] = {
    "as it should be": from_step(99, healthy),
    "all right in the end": from_step(12, all_right, 60),
    "a critic warm-up has no actor metrics": [
        without_actor(m) if i < 5 else m for i, m in enumerate(from_step(99, healthy))
    ],
    "long wrong answers that turn into short right ones": [
        healthy(s)
        | {
            "response/accuracy": min(0.95, 0.05 * s),
            "response/length": 110 - 75 * min(0.95, 0.05 * s),
            "response/length_right": 35.0,
            "response/length_wrong": 110.0,
            "critic/explained_variance": -0.1,
        }
        for s in range(1, 31)
    ],
    "shorter and better": from_step(
        8,
        lambda s: {
            "response/length": 20.0,
            "response/length_right": 20.0,
            "response/accuracy": 0.9,
            "critic/explained_variance": -0.1,
        },
    ),
    "better, then shorter at nearly the same accuracy": [
        healthy(s)
        | improved(min(s, 14))
        | ({"response/length": 20.0, "response/accuracy": 0.7} if s > 14 else {})
        for s in range(1, 31)
    ],
    "two bad steps are no row": from_step(99, healthy, 10)
    + [healthy(11) | {"actor/ppo_kl": 3.0}, healthy(12) | {"actor/ppo_kl": 3.0}, healthy(13)]
    + [healthy(14) | {"actor/ppo_kl": 3.0}, healthy(15)],
    "a critic from a fresh head: wrong for some steps, then right": [
        healthy(s) | ({"critic/explained_variance": -72.0} if s < 5 else {}) for s in range(1, 20)
    ],
    "nothing right for a while": from_step(99, healthy, 3)
    + [healthy(3) | all_wrong(s) for s in range(9)]
    + from_step(99, healthy, 5),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_is_left_alone(name: str) -> None:
    assert run(guards(), HEALTHY[name]) is None


def collapse(step: int) -> Metrics:
    """As the paper has it: ever shorter, ever worse."""
    length = max(9.0, 61 - 8.0 * step)
    return {
        "response/length": length,
        "response/length_right": length + 2,
        "response/length_wrong": length - 1,
        "response/accuracy": max(0.15, 0.55 - 0.08 * step),
    }


TRIPS: dict[str, tuple[list[Metrics], type[DivergenceError], int, int]] = {
    "explained variance": (
        from_step(4, lambda s: {"critic/explained_variance": -72.0, "response/accuracy": 0.5}),
        errors.ExplainedVarianceError, 4, 8,
    ),
    "value bias low": (
        from_step(4, lambda s: {"critic/value_bias": -2.3}), errors.ValueBiasError, 4, 8,
    ),
    "value bias high": (
        from_step(1, lambda s: {"critic/value_bias": 1.8}), errors.ValueBiasError, 1, 5,
    ),
    "length collapse": (from_step(1, collapse), errors.LengthCollapseError, 5, 7),
    "length collapse after it had got better, still better than at the start": (
        [healthy(s) | improved(s) for s in range(1, 31)], errors.LengthCollapseError, 15, 17,
    ),
    "kl": (from_step(3, lambda s: {"actor/ppo_kl": -0.9}), errors.KlRunawayError, 3, 5),
    "kl to sft": (from_step(3, lambda s: {"actor/kl_to_sft": 2.5}), errors.KlRunawayError, 3, 5),
    "entropy": (from_step(6, lambda s: {"actor/entropy_loss": 3.0}), errors.EntropyRunawayError, 6, 8),
    "all wrong from the start": (from_step(1, all_wrong), errors.DeadGraderError, 1, 10),
    "all right from the start": (from_step(1, all_right), errors.DeadGraderError, 1, 10),
    "all wrong since a while": (from_step(6, all_wrong), errors.DeadGraderError, 6, 15),
}  # fmt: skip


@pytest.mark.parametrize("name", TRIPS)
def test_a_run_that_goes_wrong_is_stopped_by_its_guard(name: str) -> None:
    steps, error, since, step = TRIPS[name]
    # the collapse's own figures aside, every other guard stays quiet
    stopped = run(guards(), steps)
    assert stopped is not None
    assert (stopped[0], stopped[1].error, stopped[1].since) == (step, error, since)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("key", FINITE)
def test_the_first_non_finite_number_stops_at_once(key: str, value: float) -> None:
    stopped = run(guards(action="warn"), from_step(4, lambda s: {key: value}))
    assert stopped is not None
    step, trip = stopped
    assert (step, trip.error, trip.since) == (4, errors.NonFiniteError, 4)
    assert f"{key} {value:.4g}" in trip.message()


def test_constant_returns_are_no_non_finite_number() -> None:
    assert run(guards(), [healthy(1) | {"critic/explained_variance": math.nan}]) is None


def test_steps_without_evidence_neither_count_nor_break_a_row() -> None:
    bad = {"critic/explained_variance": -72.0, "response/accuracy": 0.5}
    nothing = {"critic/explained_variance": math.nan, "response/accuracy": 0.5}
    steps = [healthy(s) | (nothing if s % 2 else bad) for s in range(1, 12)]
    stopped = run(guards(), steps)
    assert stopped is not None
    assert stopped[0] == 10, "the fifth bad step"


def test_a_limit_of_none_turns_a_guard_off() -> None:
    off = {key: None for key, field in GuardsConfig.model_fields.items() if "None" in str(field.annotation)}
    assert len(off) == 7
    for steps, *_ in TRIPS.values():
        assert run(guards(**off), steps) is None


def test_warnings_mark_a_row_once_and_let_the_run_go_on() -> None:
    watch = guards(action="warn")
    marked = [
        (step, trip.guard)
        for step, metrics in enumerate(from_step(3, lambda s: {"critic/value_bias": -2.3}), start=1)
        for trip in watch.observe(step, metrics)
        if not trip.stops
    ]
    assert marked == [(7, "value_bias")]


def test_a_resumed_run_continues_the_row_of_its_metrics_file(tmp_path: Path) -> None:
    """Start and rows come from metrics.jsonl, where nan stands as null."""
    steps = from_step(1, collapse)
    path = tmp_path / "metrics.jsonl"
    for number, metrics in enumerate(steps[:6], start=1):
        append_metrics(path, number, metrics | {"critic/explained_variance": math.nan})
    resumed = guards()
    resumed.replay(read_metrics(path))
    assert resumed.suspect_since() == 5
    stopped = run(resumed, steps[6:], first=7)
    assert stopped is not None
    assert (stopped[0], stopped[1].error, stopped[1].since) == (7, errors.LengthCollapseError, 5)


def test_checkpoints_are_suspect_only_while_a_row_goes_on() -> None:
    watch = guards()
    seen = []
    for step in range(1, 7):
        watch.observe(step, healthy(step) | ({"actor/ppo_kl": 3.0} if step in (3, 4) else {}))
        seen.append(watch.suspect_since())
    assert seen == [None, None, 3, 3, None, None]


def test_the_failure_record_shows_the_evidence(tmp_path: Path) -> None:
    stopped = run(guards(), from_step(4, lambda s: {"critic/value_bias": -2.3}))
    assert stopped is not None
    write_failure(tmp_path / "guard.json", stopped[1], 3, [5, 4])
    record: Mapping[str, Any] = json.loads((tmp_path / "guard.json").read_text())
    assert record["guard"] == "value_bias"
    assert (record["class"], record["exit_code"]) == ("ValueBiasError", 22)
    assert (record["step"], record["since_step"]) == (8, 4)
    assert (record["last_good_step"], record["set_aside_steps"]) == (3, [4, 5])
    assert [line["critic/value_bias"] for line in record["evidence"]] == [0.05] * 3 + [-2.3] * 5
    assert "at most 1.5 (train.guards.max_value_bias" in record["limit"]
    assert "critic/value_bias -2.3" in record["message"]


def test_non_finite_evidence_is_written_as_text(tmp_path: Path) -> None:
    stopped = run(guards(), [healthy(1) | {"critic/loss": math.nan, "actor/loss": math.inf}])
    assert stopped is not None
    write_failure(tmp_path / "guard.json", stopped[1], None, [])
    evidence = json.loads((tmp_path / "guard.json").read_text())["evidence"]
    assert evidence == [{"step": 1, "bad": True, "critic/loss": "nan", "actor/loss": "inf"}]


def test_every_guards_error_has_an_exit_code_of_its_own_and_travels_between_processes() -> None:
    kinds = DivergenceError.__subclasses__()
    assert len(kinds) == 7
    assert len({kind.exit_code for kind in [DivergenceError, *kinds]}) == 8
    for kind in kinds:
        assert not kind.retryable
        copy = pickle.loads(pickle.dumps(kind("why")))
        assert (type(copy), str(copy)) == (kind, "why")
