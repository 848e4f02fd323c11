"""Guards that act: they watch each step's metrics and end a run that has gone wrong, with the evidence.

The trainer asks after a step is measured and before its checkpoint is written. State is a function of the
metrics seen so far, so a resumed run replays its metrics.jsonl and goes on as if it had never been away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training.ppo.guard_rules import Rule, Start, rules
from vcppo.config.train import GuardsConfig, RewardConfig
from vcppo.errors import DivergenceError
from vcppo.files import write_json_atomic

EVIDENCE_STEPS = 20
"""Last steps whose figures go into the failure record."""


@dataclass(frozen=True)
class Trip:
    """A guard that acts."""

    guard: str
    step: int
    since: int
    """First step of the row: what was saved from here on is suspect."""
    limit: str
    evidence: tuple[Mapping[str, Any], ...]
    """Figures of the last steps, oldest first."""
    stops: bool
    error: type[DivergenceError]
    advice: str

    def message(self) -> str:
        """What was seen, what is allowed, what to do."""
        last = {k: v for k, v in self.evidence[-1].items() if k not in ("step", "bad")}
        seen = ", ".join(f"{k} {'n/a' if v is None else format(v, '.4g')}" for k, v in last.items())
        when = f"step {self.step}" if self.since == self.step else f"steps {self.since} to {self.step}"
        return f"guard {self.guard}, {when}: {seen}; allowed: {self.limit}. To mend it, {self.advice}"

    def record(self) -> dict[str, Any]:
        """The failure record as plain JSON values."""
        return {
            "guard": self.guard,
            "class": self.error.__name__,
            "exit_code": self.error.exit_code,
            "step": self.step,
            "since_step": self.since,
            "limit": self.limit,
            "evidence": [{k: _json(v) for k, v in line.items()} for line in self.evidence],
            "message": self.message(),
        }


@dataclass
class _Watch:
    rule: Rule
    since: int | None = None
    bad_steps: int = 0
    seen: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=EVIDENCE_STEPS))


class Guards:
    """All guards of a run."""

    def __init__(self, config: GuardsConfig, reward: RewardConfig) -> None:
        self._warn_only = config.action == "warn"
        self._start = Start()
        self._watches = [_Watch(rule) for rule in rules(config, reward)]

    def replay(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Take in the steps of an earlier attempt (lines of metrics.jsonl) without acting on them."""
        for line in lines:
            self.observe(int(line["step"]), line)

    def observe(self, step: int, metrics: Mapping[str, Any]) -> list[Trip]:
        """Take in one step's raw metrics; gives the guards that act now, the ones that stop the run first.

        A guard that only warns acts once a row of bad steps.
        """
        self._start.see(metrics)
        trips = [trip for watch in self._watches if (trip := self._judge(watch, step, metrics))]
        return sorted(trips, key=lambda trip: not trip.stops)

    def suspect_since(self) -> int | None:
        """First step of the longest row of bad steps that is still going on: older checkpoints are good."""
        return min(self.open_rows().values(), default=None)

    def open_rows(self) -> dict[str, int]:
        """Of each guard that is counting bad steps now: the first of them."""
        return {watch.rule.name: watch.since for watch in self._watches if watch.since is not None}

    def _judge(self, watch: _Watch, step: int, metrics: Mapping[str, Any]) -> Trip | None:
        rule = watch.rule
        verdict = rule.judge(metrics, self._start)
        if verdict.bad is None:
            return None
        watch.seen.append({"step": step, "bad": verdict.bad, **verdict.evidence})
        if not verdict.bad:
            watch.since, watch.bad_steps = None, 0
            return None
        watch.since = step if watch.since is None else watch.since
        watch.bad_steps += 1
        stops = rule.always_stops or not self._warn_only
        if watch.bad_steps != rule.steps and not (stops and watch.bad_steps > rule.steps):
            return None
        return Trip(
            rule.name, step, watch.since, rule.limit, tuple(watch.seen), stops, rule.error, rule.advice
        )


def write_failure(path: Path, trip: Trip, last_good_step: int | None, set_aside: Iterable[int]) -> None:
    """guard.json: what was seen, what is allowed, and which checkpoint is the last good one."""
    write_json_atomic(
        path, trip.record() | {"last_good_step": last_good_step, "set_aside_steps": sorted(set_aside)}
    )


def _json(value: Any) -> Any:
    """JSON has no nan and no infinity: spelled out, because here they are the evidence."""
    if isinstance(value, float) and not (float("-inf") < value < float("inf")):
        return str(value)
    return value
