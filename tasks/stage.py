"""What every stage shares: open the work directory, run the body, publish its outputs, write its record."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vcppo import records
from vcppo.config import Config, Runtime, load_params, load_runtime
from vcppo.errors import DataError, VcppoError
from vcppo.files import path_size, publish, sha256_path, storage_errors
from vcppo.pipeline import StageSpec, load_all, load_stage, made_by_pipelines
from vcppo.workdir import WorkDirectory, fingerprint, open_work_directory

CODE_ROOMS = ("tasks", "training", "vcppo")


@dataclass
class StageContext:
    """What a stage body gets. It reads `config` and its declared inputs, keeps what it resumes from in
    `work`, and writes each declared output to `out(path)`."""

    spec: StageSpec
    config: Config
    runtime: Runtime
    work: Path
    fingerprint: str
    sources: list[records.Artifact] = field(default_factory=list)
    """Things from outside the pipeline that the body read; they go into the record."""
    ray_job: str | None = None
    wandb_run: str | None = None
    _reported: float = 0.0

    @property
    def stage(self) -> str:
        return self.spec.name

    def out(self, path: str) -> Path:
        """Where to write the declared output `path` before it is published; the parent directory exists."""
        if path not in self.spec.outs:
            raise AssertionError(f"{path} is no output of stage {self.stage} in dvc.yaml")
        staged = self.work / "out" / path
        staged.parent.mkdir(parents=True, exist_ok=True)
        return staged

    def say(self, message: str) -> None:
        """One line for the person watching."""
        print(f"[{self.stage}] {message}", flush=True)

    def progress(self, done: int, total: int, what: str = "", *, every_seconds: float = 5.0) -> None:
        """A progress line, at most one every few seconds and one at the end."""
        now = time.monotonic()
        if done < total and now - self._reported < every_seconds:
            return
        self._reported = now
        self.say(f"{done}/{total} ({100 * done // max(total, 1)} %){'  ' + what if what else ''}")


Body = Callable[[StageContext], Mapping[str, Any]]


def run_stage(name: str, body: Body, log_to: Callable[[Path], None] = lambda path: None) -> None:
    """Run a stage body from params.yaml and the environment, with everything around it.

    log_to: called with the path of this attempt's log once the work directory is open.
    Raises VcppoError subclasses; each leaves a failure record in the work directory.
    """
    config, runtime = load_params(), load_runtime()
    spec = load_stage(name)
    inputs = {path: _hash_input(path, spec) for path in spec.deps}
    print_ = fingerprint(name, spec.parameter_values(config), inputs)
    root = runtime.work_root
    with storage_errors(root):
        directory = open_work_directory(
            root, name, print_, runtime.layout(), allow_layout_change=runtime.allow_layout_change
        )
    try:
        log_to(directory.log_path())
        _run_leased(StageContext(spec, config, runtime, directory.path, print_), body, directory, inputs)
    finally:
        directory.close()


def _run_leased(
    context: StageContext, body: Body, directory: WorkDirectory, inputs: Mapping[str, str]
) -> None:
    started, clock = records.now(), time.monotonic()
    outcome: dict[str, Any] = {"attempt": directory.attempt, "started": started}
    try:
        with storage_errors(directory.path):
            if directory.replaced:
                context.say(f"what was kept in {directory.path} was published before; running anew")
            if directory.finished:
                context.say(f"finished before; publishing again from {directory.path}")
                result = directory.result()
            else:
                if directory.attempt > 1:
                    context.say(f"attempt {directory.attempt}, going on in {directory.path}")
                metrics = dict(body(context))
                result = {
                    "metrics": metrics,
                    "sources": [source.model_dump(mode="json") for source in context.sources],
                    "ray_job": context.ray_job,
                    "wandb_run": context.wandb_run,
                }
                _check_outputs(context)
                directory.mark_finished(result)
            directory.write_outcome({**outcome, "finished": records.now(), "outcome": "succeeded"})
            _publish(context, directory, inputs, result, started, time.monotonic() - clock)
    except BaseException as error:
        # a full disk must not hide what went wrong
        with contextlib.suppress(OSError):
            directory.write_outcome({**outcome, "finished": records.now(), **failure(error)})
        raise
    if context.runtime.keep_work:
        directory.mark_published()
    else:
        directory.discard()


def failure(error: BaseException) -> dict[str, Any]:
    """The failure record of an error: its class, message, exit code and whether trying again can help."""
    return {
        "outcome": "failed",
        "class": type(error).__name__,
        "retryable": getattr(error, "retryable", False),
        "message": str(error),
        "exit_code": getattr(error, "exit_code", 1),
    }


def _publish(
    context: StageContext,
    directory: WorkDirectory,
    inputs: Mapping[str, str],
    result: Mapping[str, Any],
    started: str,
    seconds: float,
) -> None:
    record_path = f"{records.RECORDS}/{context.stage}.json"
    outputs = []
    for path in context.spec.outs:
        if path == record_path:
            continue
        staged = directory.out / path
        outputs.append(records.Artifact(path=path, sha256=sha256_path(staged), bytes=path_size(staged)))
        publish(staged, Path(path), link=not context.runtime.keep_work)
    record = records.RunRecord(
        stage=context.stage,
        fingerprint=context.fingerprint,
        started=started,
        finished=records.now(),
        seconds=round(seconds, 3),
        inputs=tuple(_input_artifact(path, digest) for path, digest in inputs.items())
        + tuple(records.Artifact.model_validate(source) for source in result["sources"]),
        outputs=tuple(outputs),
        parameters=context.spec.parameter_values(context.config),
        configuration=context.config.model_dump(mode="json"),
        runtime=context.runtime.model_dump(mode="json"),
        code=records.code_state(made=made_by_pipelines()),
        environment=records.environment(),
        attempts=tuple(directory.attempts()),
        metrics=result["metrics"],
        flow_run=records.flow_run(),
        ray_job=result["ray_job"],
        wandb_run=result["wandb_run"],
    )
    staged = directory.out / record_path
    staged.parent.mkdir(parents=True, exist_ok=True)
    staged.write_text(records.render(record), encoding="utf-8")
    publish(staged, Path(record_path), link=not context.runtime.keep_work)


def _hash_input(path: str, spec: StageSpec) -> str:
    if not Path(path).exists():
        makers = [stage.name for stage in load_all().values() if path in stage.outs]
        hint = f"; stage {makers[0]} makes it: run `dvc repro {makers[0]}` first" if makers else ""
        raise DataError(f"{path}: input of stage {spec.name} is missing{hint}")
    return sha256_path(Path(path))


def _input_artifact(path: str, digest: str) -> records.Artifact:
    kind = "code" if path.split("/")[0] in CODE_ROOMS else "data"
    return records.Artifact(path=path, sha256=digest, bytes=path_size(Path(path)), kind=kind)


def _check_outputs(context: StageContext) -> None:
    record_path = f"{records.RECORDS}/{context.stage}.json"
    missing = [p for p in context.spec.outs if p != record_path and not (context.work / "out" / p).exists()]
    if missing:
        raise VcppoError(f"stage {context.stage} ended without making {', '.join(missing)}")
