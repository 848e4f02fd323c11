"""Stage ablation_runs: every run of a study, sharded over Ray; what has finished before is taken as it is."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.ablation.plan import CRITICS, POLICY, PlannedRun, plan
from tasks.ablation.run import STAGE, evaluate
from tasks.ablation_critics import SUMMARY
from tasks.stage import CODE_ROOMS, StageContext
from vcppo.errors import VcppoError
from vcppo.files import publish, sha256_path, write_json_atomic

OUTPUT = "data/ablation"


def run(context: StageContext) -> Mapping[str, Any]:
    """Run what is missing, then collect all.

    Raises the first error of a run that failed for good, after all others have ended; they are kept.
    """
    code = {dep: sha256_path(Path(dep)) for dep in context.spec.deps if dep.split("/")[0] in CODE_ROOMS}
    runs = plan(context.config, code)
    root = context.runtime.work_root / STAGE
    missing = [r for r in runs if not (root / r.fingerprint / "finished.json").is_file()]
    context.say(f"{len(runs)} runs, {len(runs) - len(missing)} finished before")
    _run_missing(context, missing, root)

    out = context.out(OUTPUT)
    base = evaluate(context, "sft", POLICY)
    write_json_atomic(out / "base.json", {"evaluation": base})
    publish(CRITICS / SUMMARY, out / "critics.json", link=False)
    collected = [_collect(planned, root / planned.fingerprint, out) for planned in runs]
    write_json_atomic(out / "runs.json", collected)
    return {
        "num_runs": len(collected),
        "num_stopped": sum(entry["outcome"] == "stopped" for entry in collected),
        "seconds_of_all_runs": round(sum(entry["seconds"] for entry in collected)),
    }


def _run_missing(context: StageContext, missing: Sequence[PlannedRun], root: Path) -> None:
    from training.commands import Command, run_commands

    if not missing:
        return
    planned = {r.name: r for r in missing}
    commands = []
    for name, run_ in planned.items():
        spec = context.work / "specs" / f"{name}.json"
        write_json_atomic(spec, _spec(run_))
        commands.append(
            Command(
                name=name,
                arguments=(sys.executable, "-m", "tasks.ablation.run", str(spec.resolve())),
                folder=Path.cwd(),
                log=(context.work / "logs" / f"{name}.log").resolve(),
            )
        )
    failed: dict[str, VcppoError] = {}
    done = 0

    def show(running: Sequence[str]) -> None:
        steps = [f"{n} step {_last_step(root / planned[n].fingerprint)}" for n in running]
        context.progress(done, len(commands), "; ".join(steps), every_seconds=30.0)

    for command, error in run_commands(
        commands, context.runtime, at_once=context.runtime.runs_at_once, on_tick=show
    ):
        done += 1
        if error is None:
            context.say(f"{done}/{len(commands)} {command.name}: {_in_short(root, planned[command.name])}")
        else:
            failed[command.name] = error
            context.say(f"{done}/{len(commands)} {command.name}: FAILED: {error}")
    if failed:
        name, error = next(iter(failed.items()))
        raise type(error)(
            f"{len(failed)} of {len(commands)} runs failed ({', '.join(failed)}); the others are kept, run "
            f"again for the rest. The first: {error}"
        )


def _spec(run_: PlannedRun) -> dict[str, Any]:
    return {
        "config": run_.config.model_dump(mode="json"),
        "fingerprint": run_.fingerprint,
        "critic": str(run_.critic) if run_.critic else None,
        "evaluated_steps": run_.evaluated_steps,
    }


def _collect(run_: PlannedRun, directory: Path, out: Path) -> dict[str, Any]:
    finished = json.loads((directory / "finished.json").read_text(encoding="utf-8"))
    target = out / "metrics" / run_.row / f"{run_.seed_index}.jsonl"
    target.parent.mkdir(parents=True, exist_ok=True)
    publish(directory / "metrics.jsonl", target, link=False)
    identity = {
        "row": run_.row,
        "seed_index": run_.seed_index,
        "seed": run_.config.seed,
        "fingerprint": run_.fingerprint,
    }
    return {**identity, **finished}


def _in_short(root: Path, run_: PlannedRun) -> str:
    result = json.loads((root / run_.fingerprint / "finished.json").read_text(encoding="utf-8"))
    parts = [f"{result['outcome']} at step {result['last_step']}, {result['seconds']:.0f} s"]
    for step, by_benchmark in result["evaluations"].items():
        measures = next(iter(by_benchmark.values()))
        parts.append(
            f"step {step}: accuracy {measures['average_at_k']:.3f}, "
            f"length {measures['mean_response_tokens']:.1f}"
        )
    return "; ".join(parts)


def _last_step(directory: Path) -> int:
    path = directory / "metrics.jsonl"
    return len(path.read_text(encoding="utf-8").splitlines()) if path.is_file() else 0
