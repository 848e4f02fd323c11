"""One job, one process or many: the same function runs here, or on every worker of Ray Train.

transformers' Trainer finds the process group that Ray Train has set up and averages gradients over it (gloo
on CPUs, NCCL on GPUs). Workers share the job's folder: on several machines it must lie on storage that all of
them see.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from training.finetune.callbacks import Progress
from training.finetune.trainer import is_finished, limit_threads
from vcppo.config import Runtime
from vcppo.errors import InfrastructureError, VcppoError


class Job(Protocol):
    """What every job brings; the rest is its own."""

    @property
    def stage(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    @property
    def runtime(self) -> Runtime: ...


AnyJob = TypeVar("AnyJob", bound=Job)


def run_job(run: Callable[[AnyJob, Progress], None], job: AnyJob, progress: Progress) -> None:
    """Run a job to its end, unless an earlier attempt has. Raises what `run` raises,
    InfrastructureError if a worker dies.
    """
    if is_finished(job.folder):
        return
    job.folder.mkdir(parents=True, exist_ok=True)
    workers = job.runtime.num_nodes * job.runtime.devices_per_node
    if workers == 1:
        limit_threads(job.runtime)
        run(job, progress)
        return
    _run_on_ray(run, job, workers)


def _run_on_ray(run: Callable[[AnyJob, Progress], None], job: AnyJob, workers: int) -> None:
    from training.ray_session import ray_session

    use_gpu = job.runtime.device == "cuda"
    with ray_session(job.runtime, num_cpus=workers, num_gpus=workers if use_gpu else 0):
        from ray.train import RunConfig, ScalingConfig
        from ray.train.torch import TorchConfig, TorchTrainer

        trainer = TorchTrainer(
            _worker,
            train_loop_config={"run": run, "job": job},
            scaling_config=ScalingConfig(num_workers=workers, use_gpu=use_gpu),
            torch_config=TorchConfig(backend="nccl" if use_gpu else "gloo"),
            run_config=RunConfig(name=job.stage, storage_path=str((job.folder / "ray").resolve())),
        )
        try:
            trainer.fit()
        except Exception as error:
            raise _own_error(error) from error


def _worker(config: dict[str, Any]) -> None:
    job: Job = config["job"]
    limit_threads(job.runtime)
    config["run"](job, _printer(job.stage))


def _printer(stage: str, every_seconds: float = 5.0) -> Progress:
    printed = 0.0

    def progress(done: int, total: int, what: str) -> None:
        nonlocal printed
        now = time.monotonic()
        if done < total and now - printed < every_seconds:
            return
        printed = now
        print(f"[{stage}] {done}/{total}  {what}", file=sys.stderr, flush=True)

    return progress


def _own_error(error: Exception) -> VcppoError:
    """The first error of a worker that is ours, else one that says that the workers failed."""
    failures: dict[int, BaseException] = getattr(error, "worker_failures", {})
    for failure in failures.values():
        cause: BaseException | None = failure
        while cause is not None:
            if isinstance(cause, VcppoError):
                return type(cause)(str(cause))
            cause = getattr(cause, "cause", None) or cause.__cause__
    first = next(iter(failures.values()), error)
    return InfrastructureError(f"a worker of Ray Train failed: {type(first).__name__}: {first}")
