"""A Ray session for one stage: private on this machine, or the cluster that the runtime names."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vcppo.config.runtime import Runtime
from vcppo.errors import InfrastructureError

ROOT = Path(__file__).resolve().parents[1]
START_ATTEMPTS = 3


def process_environment(runtime: Runtime) -> dict[str, str]:
    """Environment of every Ray worker: thread counts (they are part of the bits), telemetry off, no bars in
    its log."""
    threads = str(runtime.threads_per_process)
    return {
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONHASHSEED": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "DO_NOT_TRACK": "1",
    }


@contextlib.contextmanager
def ray_session(
    runtime: Runtime, *, num_cpus: int, num_gpus: int = 0, env: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Start (or join) Ray, and leave it at the end.

    A private session is asked for by `address="local"`: a plain `ray.init()` joins any cluster that it
    finds. On a cluster the checkout travels to the workers as their working directory. Raises
    InfrastructureError when Ray does not start.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # prestarted workers would import for nothing: each worker of ours needs its own environment
    os.environ.setdefault("RAY_prestart_worker_first_driver", "0")
    if runtime.device == "cpu":
        # Ray's "GPU" counts worker slots there, and an empty list of devices would refuse them
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    if runtime.ray_address is None and "ray" not in sys.modules:
        # what a private session takes anyway, with a warning; read as Ray is imported, so set before that
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    import ray

    variables = process_environment(runtime) | dict(env or {})
    arguments: dict[str, Any] = {"log_to_driver": False, "logging_level": "WARNING"}
    if runtime.ray_address is None:
        python_path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        arguments |= {
            "address": "local",
            "num_cpus": num_cpus,
            "num_gpus": num_gpus,
            "include_dashboard": False,
            "object_store_memory": runtime.object_store_megabytes * 1_000_000,
            "runtime_env": {"env_vars": variables | {"PYTHONPATH": python_path}},
        }
    else:
        excludes = ["/.venv", "/.git", "/.dvc", "/work", "/runs", "/data", "/models", "/logs"]
        arguments |= {
            "address": runtime.ray_address,
            "runtime_env": {"env_vars": variables, "working_dir": str(ROOT), "excludes": excludes},
        }
    sys.stdout.flush()
    _start(ray, arguments)
    try:
        yield
    finally:
        ray.shutdown()


def _start(ray: Any, arguments: Mapping[str, Any]) -> None:
    """`ray.init`, again where it gives up: a private session's processes get 30 s to answer, which a busy
    machine may need longer for."""
    import psutil

    us = psutil.Process()
    for attempt in range(START_ATTEMPTS):
        before = set(us.children())
        try:
            ray.init(**arguments)
            return
        except Exception as error:  # a plain Exception is what Ray raises when it gives up
            ray.shutdown()
            # it leaves what it has started, which would slow the next attempt down
            for child in set(us.children()) - before:
                with contextlib.suppress(psutil.NoSuchProcess):
                    for process in (*child.children(recursive=True), child):
                        process.kill()
            if attempt == START_ATTEMPTS - 1:
                where = arguments["address"]
                raise InfrastructureError(
                    f"Ray at {where}: did not start in {START_ATTEMPTS} attempts: {error}; run again when "
                    "the machine is less busy, or check VCPPO_RAY_ADDRESS"
                ) from error
            print(f"Ray did not start ({error}); trying again", file=sys.stderr, flush=True)
