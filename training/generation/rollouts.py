"""Problems in, graded rollout shards out: one parquet file a shard, resumable, spread over Ray workers.

A shard is written whole or not at all, so a run that was killed finds its finished shards and draws only the
others;
a sample's noise depends on its name alone, so the result is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.generation.engine import Engine, EngineSettings, Response
from training.generation.prompts import Problem
from training.generation.scoring import Scored, score_responses
from vcppo.config.runtime import Runtime
from vcppo.config.stages import RewardConfig

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ShardPlan:
    """How problems are cut into shards."""

    directory: Path
    problems: Sequence[Problem]
    samples_per_problem: int
    problems_per_shard: int
    key_prefix: str
    """First part of each sample's noise key: apart for rollouts and evaluations."""

    def shards(self) -> list[tuple[Path, Sequence[Problem]]]:
        size = self.problems_per_shard
        return [
            (self.directory / f"shard-{i:05d}.parquet", self.problems[start : start + size])
            for i, start in enumerate(range(0, len(self.problems), size))
        ]


def generate_shards(
    plan: ShardPlan,
    settings: EngineSettings,
    reward: RewardConfig,
    runtime: Runtime,
    progress: Callable[[int, int, str], None],
) -> list[Path]:
    """Draw and grade what is missing of a plan.

    Returns:
        every shard's path, in order.

    Raises:
        GraderError: the canary pair of a batch was graded wrong; finished shards stay.
    """
    plan.directory.mkdir(parents=True, exist_ok=True)
    shards = plan.shards()
    missing = [(path, problems) for path, problems in shards if not path.is_file()]
    done = len(shards) - len(missing)
    right = total = 0
    for path, responses in _sample_all(missing, plan, settings, runtime):
        scored = score_responses([_gradable(r) for r in responses], reward)
        write_rollouts(path, responses, scored)
        done += 1
        right += sum(s.status == "right" for s in scored)
        total += len(scored)
        progress(done, len(shards), f"shards, accuracy so far {right / total:.3f}")
    return [path for path, _ in shards]


def _sample_all(
    shards: Sequence[tuple[Path, Sequence[Problem]]],
    plan: ShardPlan,
    settings: EngineSettings,
    runtime: Runtime,
) -> Iterator[tuple[Path, list[Response]]]:
    """Responses of each shard, in order with one worker, as they finish with several."""
    workers = min(runtime.num_nodes * runtime.devices_per_node, len(shards))
    if workers <= 1:
        engine = Engine(settings) if shards else None
        for path, problems in shards:
            assert engine is not None
            yield path, engine.sample(problems, plan.samples_per_problem, plan.key_prefix)
        return

    import ray
    from ray.util import ActorPool

    from training.ray_session import ray_session

    with ray_session(runtime, num_cpus=workers):
        options: dict[str, Any] = {"num_gpus": 1} if runtime.device == "cuda" else {"num_cpus": 1}
        engine_class = ray.remote(Engine).options(**options)
        pool = ActorPool([engine_class.remote(settings) for _ in range(workers)])
        results = pool.map_unordered(
            lambda actor, job: actor.sample_shard.remote(*job, plan.samples_per_problem, plan.key_prefix),
            [(i, problems) for i, (_, problems) in enumerate(shards)],
        )
        for index, responses in results:
            yield shards[index][0], responses


def _gradable(response: Response) -> tuple[str, str, str, str]:
    problem = response.problem
    return response.text, problem.gold, problem.grader, response.finish_reason


def rollout_schema() -> pa.Schema:
    """Columns of a rollout shard (data/README.md)."""
    import pyarrow as pa

    return pa.schema(
        [
            ("id", pa.string()),
            ("data_source", pa.string()),
            ("grader", pa.string()),
            ("sample", pa.int32()),
            ("prompt_ids", pa.list_(pa.int32())),
            ("response_ids", pa.list_(pa.int32())),
            ("log_probs", pa.list_(pa.float32())),
            ("response", pa.string()),
            ("finish_reason", pa.string()),
            ("gold", pa.string()),
            ("status", pa.string()),
            ("answer", pa.string()),
            ("score", pa.float32()),
        ]
    )


def write_rollouts(path: Path, responses: Sequence[Response], scored: Sequence[Scored]) -> None:
    """Write one shard: to a temporary name, then renamed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {
            "id": r.problem.id,
            "data_source": r.problem.data_source,
            "grader": r.problem.grader,
            "sample": r.sample,
            "prompt_ids": r.prompt_ids,
            "response_ids": r.response_ids,
            "log_probs": r.log_probs,
            "response": r.text,
            "finish_reason": r.finish_reason,
            "gold": r.problem.gold,
            "status": s.status,
            "answer": s.answer,
            "score": s.score,
        }
        for r, s in zip(responses, scored, strict=True)
    ]
    temporary = path.with_suffix(".partial")
    pq.write_table(pa.Table.from_pylist(rows, schema=rollout_schema()), temporary)
    temporary.replace(path)


def read_rollouts(directory: Path) -> list[dict[str, Any]]:
    """All rows of a folder of shards, in shard order."""
    import pyarrow.parquet as pq

    return [row for path in sorted(directory.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
