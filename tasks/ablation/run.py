"""One run of a study in a process of its own: `python -m tasks.ablation.run SPEC.json`.

It trains in a work directory of its own fingerprint, so a run that was killed goes on, and one that has
finished is done at once. A run that a guard stops is a result too: its last good checkpoint is evaluated.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.ending import exit_code
from tasks.stage import StageContext, failure
from vcppo import records
from vcppo.config import Config, Runtime, load_runtime
from vcppo.errors import DivergenceError, LeaseHeldError
from vcppo.files import remove, storage_errors
from vcppo.pipeline import StageSpec
from vcppo.workdir import WorkDirectory, open_work_directory

STAGE = "ablation_run"
SPEC = StageSpec(STAGE, deps=(), params=(), outs=("data/evaluation",))
"""What an evaluation writes; it stays in the work directory."""
LEASE_SECONDS = 60.0
"""How long the trainer of a killed attempt has to end."""


def main(arguments: list[str]) -> int:
    spec = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    return exit_code(STAGE, lambda: run(spec, load_runtime()))


def run(spec: Mapping[str, Any], runtime: Runtime) -> None:
    """Train and evaluate one run, unless an earlier attempt has.

    spec: `config`, `fingerprint`, `critic` (or None), `evaluated_steps` (tasks.ablation.plan.PlannedRun).
    Raises what training and evaluation raise, but for DivergenceError, which is the run's outcome.
    """
    directory = _open(runtime, spec["fingerprint"])
    outcome: dict[str, Any] = {"attempt": directory.attempt, "started": records.now()}
    try:
        if not directory.finished:
            with storage_errors(directory.path):
                directory.mark_finished(_train_and_evaluate(spec, runtime, directory))
        directory.write_outcome({**outcome, "finished": records.now(), "outcome": "succeeded"})
        for heavy in ("checkpoints", "rollouts", "out", "shards"):
            remove(directory.path / heavy)
    except BaseException as error:
        with contextlib.suppress(OSError):
            directory.write_outcome({**outcome, "finished": records.now(), **failure(error)})
        raise
    finally:
        directory.close()


def _open(runtime: Runtime, fingerprint: str) -> WorkDirectory:
    deadline = time.monotonic() + LEASE_SECONDS
    while True:
        try:
            return open_work_directory(
                runtime.work_root,
                STAGE,
                fingerprint,
                runtime.layout(),
                allow_layout_change=runtime.allow_layout_change,
            )
        except LeaseHeldError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1.0)


def _train_and_evaluate(
    spec: Mapping[str, Any], runtime: Runtime, directory: WorkDirectory
) -> dict[str, Any]:
    from training.ppo.checkpoints import PREFIX
    from training.ppo.launch import train
    from training.ppo.verl_config import RunPaths
    from vcppo.checkpoints import newest_complete

    config, work = Config.model_validate(spec["config"]), directory.path.resolve()
    context = StageContext(SPEC, config, runtime, work, spec["fingerprint"])
    paths = RunPaths(
        policy=Path("models/sft").resolve(),
        critic=Path(spec["critic"]).resolve() if spec["critic"] else None,
        train_file=Path("data/prepared/train.parquet").resolve(),
        work=work,
    )
    result: dict[str, Any] = {"outcome": "finished", "guard": None, "reason": None}
    started = time.monotonic()
    steps = list(spec["evaluated_steps"])
    try:
        train(config, runtime, paths, spec["fingerprint"])
    except DivergenceError as error:
        newest = newest_complete(paths.checkpoints, PREFIX)
        result |= {"outcome": "stopped", "guard": type(error).__name__, "reason": str(error)}
        steps = [step for step in steps if newest and step < newest[0]] + ([newest[0]] if newest else [])
    seconds = time.monotonic() - started
    evaluations = {}
    for step in steps:
        policy = paths.checkpoints / f"{PREFIX}{step}" / "actor" / "huggingface"
        evaluations[str(step)] = evaluate(context, f"step-{step}", policy)
    lines = paths.metrics.read_text(encoding="utf-8").splitlines()
    return {**result, "last_step": len(lines), "seconds": seconds, "evaluations": evaluations}


def evaluate(context: StageContext, name: str, policy: Path) -> dict[str, Any]:
    """Measures of a policy on every benchmark of the configuration, by name."""
    from tasks.evaluation.benchmarks import resolve
    from tasks.evaluation.figures import benchmark_metrics
    from tasks.evaluation.policies import evaluate_policy
    from training.generation.prompts import read_problems

    benchmarks = resolve(context.config, read_problems(Path("data/prepared/eval.parquet")))
    rows = evaluate_policy(dataclasses.replace(context, spec=SPEC), name, policy, benchmarks)
    return {b.name: benchmark_metrics(rows[b.name], b.samples_per_problem, b.pass_at) for b in benchmarks}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
