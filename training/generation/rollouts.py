"""Problems in, graded rollout shards out: one parquet file a shard, resumable, spread over Ray workers.

A shard is written whole or not at all, and the responses of an unfinished one are kept beside it, so a run
that was killed draws only what is missing; a sample's noise depends on its name alone, so the result is the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.generation.engine import EngineSettings
from training.generation.engines import SamplingEngine, make_engine
from training.generation.kept_responses import KeptResponses, kept_path
from training.generation.prompts import Problem
from training.generation.samples import Draw, Request, Response, plain_requests
from training.generation.scoring import score_responses
from training.generation.shard_files import read_rollouts, rollout_schema, write_rollouts
from vcppo.config.runtime import Runtime
from vcppo.config.stages import RewardConfig
from vcppo.errors import InfrastructureError, VcppoError

__all__ = [
    "Progress",
    "Shard",
    "ShardPlan",
    "draw_shards",
    "generate_shards",
    "read_rollouts",
    "rollout_schema",
    "write_rollouts",
]

Progress = Callable[[int, int, str], None]
"""Called with what is done, the total, and what it is."""


@dataclass(frozen=True)
class Shard:
    """The unit that is drawn, graded and kept together."""

    path: Path
    requests: Sequence[Request]
    draw: Draw


@dataclass(frozen=True)
class ShardPlan:
    """How problems are cut into shards."""

    directory: Path
    problems: Sequence[Problem]
    samples_per_problem: int
    problems_per_shard: int
    key_prefix: str
    """First part of each sample's noise key: apart for rollouts and evaluations."""
    requests_of: Callable[[Problem, int], list[Request]] = plain_requests
    """How a problem's samples are asked for (problem, samples per problem)."""

    def shards(self, draw: Draw) -> list[Shard]:
        """Every shard of the plan, in order."""
        size = self.problems_per_shard
        return [
            Shard(
                self.directory / f"shard-{i:05d}.parquet",
                [
                    request
                    for problem in self.problems[start : start + size]
                    for request in self.requests_of(problem, self.samples_per_problem)
                ],
                draw,
            )
            for i, start in enumerate(range(0, len(self.problems), size))
        ]


def generate_shards(
    plan: ShardPlan,
    settings: EngineSettings,
    reward: RewardConfig,
    runtime: Runtime,
    progress: Progress,
) -> list[Path]:
    """Draw and grade what is missing of a plan, as `draw_shards` does, with the settings' own sampling."""
    draw = Draw(settings.sampling, settings.max_response_tokens, plan.key_prefix)
    return draw_shards(plan.shards(draw), settings, reward, runtime, progress)


def draw_shards(
    shards: Sequence[Shard],
    settings: EngineSettings,
    reward: RewardConfig,
    runtime: Runtime,
    progress: Progress,
) -> list[Path]:
    """Draw and grade the shards that are not there yet, one engine (or one a worker) for all of them.

    Returns:
        every shard's path, in order.

    Raises:
        GraderError: the grader failed on a batch (see `score_responses`); finished shards stay.
        InfrastructureError: a worker or server died; finished shards stay.
    """
    for directory in {shard.path.parent for shard in shards}:
        directory.mkdir(parents=True, exist_ok=True)
    missing = [shard for shard in shards if not shard.path.is_file()]
    for shard in shards:
        if shard.path.is_file():  # a kill just after it was written
            kept_path(shard.path).unlink(missing_ok=True)
    done = len(shards) - len(missing)
    right = total = 0
    for shard, responses in _sample_all(missing, settings, runtime):
        scored = score_responses([_gradable(r) for r in responses], reward)
        write_rollouts(shard.path, responses, scored, settings, shard.draw)
        kept_path(shard.path).unlink(missing_ok=True)
        done += 1
        right += sum(s.status == "right" for s in scored)
        total += len(scored)
        progress(done, len(shards), f"shards, accuracy so far {right / total:.3f}")
    return [shard.path for shard in shards]


class ShardWorker:
    """An engine in a Ray worker."""

    def __init__(self, settings: EngineSettings) -> None:
        self.engine, self.settings = make_engine(settings), settings

    def sample(self, index: int, shard: Shard) -> tuple[int, list[Response]]:
        """The responses, and the shard's index handed back: several workers finish in any order."""
        return index, _sample_shard(self.engine, shard, self.settings)


def _sample_all(
    shards: Sequence[Shard], settings: EngineSettings, runtime: Runtime
) -> Iterator[tuple[Shard, list[Response]]]:
    """Responses of each shard, in order with one worker, as they finish with several."""
    if not shards:
        return
    devices = runtime.num_nodes * runtime.devices_per_node
    # a server is asked from here: what may be under way at once is its own setting
    wanted = 1 if settings.engine == "openai" else devices // settings.tensor_parallel_size
    workers = min(wanted, len(shards))
    if workers <= 1:
        engine = make_engine(settings)
        for shard in shards:
            yield shard, _sample_shard(engine, shard, settings)
        return
    yield from _sample_on_ray(shards, settings, runtime, workers)


def _sample_shard(engine: SamplingEngine, shard: Shard, settings: EngineSettings) -> list[Response]:
    keep = KeptResponses(shard.path, settings, shard.draw)
    return engine.sample(shard.requests, shard.draw, keep)


def _sample_on_ray(
    shards: Sequence[Shard], settings: EngineSettings, runtime: Runtime, workers: int
) -> Iterator[tuple[Shard, list[Response]]]:
    from training.ray_session import ray_session

    num_gpus = settings.tensor_parallel_size if runtime.device == "cuda" else 0
    options: dict[str, Any] = {"num_gpus": num_gpus} if num_gpus else {"num_cpus": 1}
    with ray_session(runtime, num_cpus=workers, num_gpus=workers * num_gpus):
        import ray
        from ray.exceptions import RayActorError, RayTaskError
        from ray.util import ActorPool

        worker_class = ray.remote(ShardWorker).options(**options)
        pool = ActorPool([worker_class.remote(settings) for _ in range(workers)])
        results = pool.map_unordered(
            lambda actor, job: actor.sample.remote(*job),
            list(enumerate(shards)),
        )
        try:
            for index, responses in results:
                yield shards[index], responses
        except RayTaskError as error:
            # the worker's own error, without the worker's traceback around it
            if isinstance(error.cause, VcppoError):
                raise error.cause from None
            raise
        except RayActorError as error:
            raise InfrastructureError(
                f"a sampling worker died ({str(error).splitlines()[0]}); finished shards are kept in "
                f"{shards[0].path.parent}: run again to draw the others"
            ) from None


def _gradable(response: Response) -> tuple[str, str, str, str]:
    request = response.request
    return response.text, request.gold, request.problem.grader, response.finish_reason
