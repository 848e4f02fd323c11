"""The TaskRunner actor: the trainer's own process. Importing this module imports neither torch nor verl.

Processes that take long to import (rollout servers, TransferQueue) start before this one imports verl, so
that they do it
side by side: that halves the time until the first step.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any


class Runner:
    """verl's TaskRunnerV1 with the start-up in parallel. One method, `run`; it returns the last step done."""

    def __init__(self) -> None:
        self.config: Any = None
        self.trainer: Any = None
        self.agent_loop_manager: Any = None
        self._started = time.monotonic()

    def run(self, config: Any, log: str) -> int:
        """Train to the last step. `log`: file that gets everything this process prints (the driver shows a
        part)."""
        _redirect_output(Path(log))
        lock = self._fence(Path(config.trainer.default_local_dir))
        try:
            self._servers = self._start_rollout_servers(config)
            errors = self._start_transfer_queue(config)
            from verl.trainer import main_ppo
            from verl.trainer.ppo.utils import need_critic, need_reference_policy
            from verl.utils.config import validate_config

            import training.ppo.trainer  # noqa: F401  registers the mode

            self._lap("verl imported")
            validate_config(
                config=config,
                use_reference_policy=need_reference_policy(config),
                use_critic=need_critic(config),
            )
            errors.join()
            self._lap("TransferQueue ready")
            base = main_ppo.TaskRunnerV1.__ray_actor_class__
            self._base = base
            base.run(self, config)
        finally:
            self._close_loggers()
            lock.close()
        return int(self.trainer.global_steps) - 1

    def init_agent_loop_manager(self) -> None:
        """Called by verl's `run` once the workers stand."""
        self._base.init_agent_loop_manager(self)
        self._lap("ready to train")

    def _close_loggers(self) -> None:
        """Ray ends this process without its exit handlers: W&B writes its last records only when told to."""
        logger = getattr(self.trainer, "logger", None)
        if logger is not None:
            logger.finish()

    def _fence(self, directory: Path) -> Any:
        """Wait until no other runner writes here: after a SIGKILL of the driver, the old trainer lives on
        for some
        seconds and can finish a checkpoint."""
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / ".lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def _start_rollout_servers(self, config: Any) -> list[Any]:
        rollout = config.actor_rollout_ref.rollout
        if rollout.name != "torch":
            return []
        import ray

        from training.ppo.rollout_server import RolloutServer, server_name, server_settings

        parallel = (
            rollout.tensor_model_parallel_size
            * rollout.data_parallel_size
            * rollout.pipeline_model_parallel_size
        )
        count = config.trainer.n_gpus_per_node * config.trainer.nnodes // parallel
        settings = server_settings(config)
        return [
            ray.remote(RolloutServer)
            .options(name=server_name(i), num_cpus=0, max_concurrency=1000, scheduling_strategy="SPREAD")
            .remote(settings, i)
            for i in range(count)
        ]

    def _start_transfer_queue(self, config: Any) -> _Background:
        config.transfer_queue.enable = True

        def start() -> None:
            import transfer_queue as tq

            tq.init(config.transfer_queue)

        return _Background(start)

    def _lap(self, what: str) -> None:
        print(f"START {time.monotonic() - self._started:5.1f} s  {what}", flush=True)


def _redirect_output(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        for target in (sys.stdout, sys.stderr):
            target.flush()
            os.dup2(stream.fileno(), target.fileno())


class _Background:
    """A thread whose exception is raised where it is joined."""

    def __init__(self, work: Any) -> None:
        self._error: BaseException | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error

    def join(self) -> None:
        self._thread.join()
        if self._error is not None:
            raise self._error
