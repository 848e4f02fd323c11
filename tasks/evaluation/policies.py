"""All samples of one policy on all benchmarks: drawn in resumable shards, graded, complete, stored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.evaluation.benchmarks import Benchmark
from tasks.evaluation.figures import (
    Row,
    by_benchmark,
    check_complete,
    finish_reasons,
    is_aborted,
    is_parser_failure,
)
from tasks.evaluation.options import requests_in_any_order
from tasks.stage import StageContext
from vcppo.errors import DataError, GraderError
from vcppo.grading.result import UNGRADED

if TYPE_CHECKING:
    from training.generation.engine import EngineSettings, ServerAddress
    from training.generation.rollouts import Shard

COLUMNS = [
    "id", "data_source", "sample", "finish_reason", "gold", "status", "answer", "response",
    "num_response_tokens", "permutation", "engine_version",
]  # fmt: skip
"""What the figures need: the token ids of a large evaluation would not fit in memory as Python lists."""
MAX_FAULT_RATE = 0.02
"""Of a benchmark that has no limit for parser failures: answers that exhaust the grader, and responses that
the engine broke off, are not the policy's doing."""


def evaluate_policy(
    context: StageContext, name: str, policy: Path, benchmarks: Sequence[Benchmark]
) -> dict[str, list[Row]]:
    """Rows of each benchmark; stored as data/evaluation/NAME.parquet.

    What is drawn is kept in the work directory whatever happens later. Raises DataError (samples missing, a
    benchmark without any text, too many responses without a readable answer), GraderError, ConfigurationError
    and InfrastructureError (as the engine does).
    """
    import pyarrow.parquet as pq

    from training.generation.rollouts import draw_shards

    settings = engine_settings(context, name, policy, benchmarks)
    shards = [
        shard
        for benchmark in benchmarks
        # engines have folders of their own: another one must not go on where this one was killed
        for shard in _shards(context, benchmark, context.work / "shards" / settings.engine / name)
    ]
    for benchmark in benchmarks:
        context.say(
            f"{name} training: {benchmark.name}, {len(benchmark.problems)} problems x "
            f"{benchmark.samples_per_problem} samples of {policy} by {settings.engine}"
        )
    paths = draw_shards(shards, settings, context.config.train.reward, context.runtime, context.progress)
    target = context.out("data/evaluation") / f"{name}.parquet"
    _concatenate(paths, target)
    rows = by_benchmark(pq.read_table(target, columns=COLUMNS).to_pylist())
    for benchmark in benchmarks:
        check_complete(
            benchmark.name,
            rows.get(benchmark.name, []),
            [problem.id for problem in benchmark.problems],
            benchmark.samples_per_problem,
        )
    check_readable(name, rows, benchmarks, target)
    return rows


def engine_settings(
    context: StageContext, name: str, policy: Path, benchmarks: Sequence[Benchmark]
) -> EngineSettings:
    """The engine that the runtime chooses, for one policy."""
    from training.generation.engine import EngineSettings

    config, runtime = context.config, context.runtime
    return EngineSettings(
        policy=policy.resolve(),
        seed=config.seed,
        sampling=config.evaluate.sampling,
        max_prompt_tokens=config.data.max_prompt_tokens,
        max_response_tokens=max(benchmark.max_response_tokens for benchmark in benchmarks),
        batch_size=runtime.rollout_batch_size,
        num_threads=runtime.threads_per_process,
        device=runtime.device,
        dtype="bfloat16" if runtime.device == "cuda" else "float32",
        engine=runtime.evaluation_engine,
        tensor_parallel_size=runtime.tensor_parallel_size if runtime.evaluation_engine == "vllm" else 1,
        server=_server(context, name),
    )


def check_readable(
    name: str, rows: dict[str, list[Row]], benchmarks: Sequence[Benchmark], kept: Path
) -> None:
    """Raises DataError naming each benchmark without any text, or with more responses without a readable
    answer or broken off by the engine than its limit: an accuracy of such responses measures the prompt, the
    parser or the engine, not the policy. GraderError if the grader cannot grade more than that. A benchmark
    without a limit has `MAX_FAULT_RATE` for what the engine broke off and what the grader cannot grade."""
    complaints = []
    grader_fails = False
    for benchmark in benchmarks:
        own, limit = rows[benchmark.name], benchmark.max_parser_failure_rate
        ungradable = [row for row in own if row["status"] == UNGRADED]
        if _exceeds(ungradable, own, limit):
            grader_fails = True
            complaints.append(
                f"{benchmark.name}: {_share(ungradable, own)} answers exhaust the grader's time or "
                f"memory, one is {ungradable[0]['answer']!r}"
            )
        elif not any(row["response"].strip() for row in own):
            complaints.append(f"{benchmark.name}: all {len(own)} responses are empty")
        elif complaint := _unreadable(own, limit):
            complaints.append(f"{benchmark.name}: {complaint}")
    if complaints:
        kind = GraderError if grader_fails else DataError
        raise kind(
            f"evaluation of the policy {name} training: {'; '.join(complaints)}. Check the prompt template, "
            f"the chat template and the grader of the benchmark; the samples are kept in {kept}"
        )


def _unreadable(rows: Sequence[Row], limit: float | None) -> str | None:
    """What to say when too many responses were broken off or hold nothing readable; None when it is few
    enough."""
    aborted = [row for row in rows if is_aborted(row)]
    if _exceeds(aborted, rows, limit):
        return (
            f"{_share(aborted, rows)} responses were broken off by the engine (finish reasons: "
            f"{finish_reasons(rows)}), allowed are {MAX_FAULT_RATE if limit is None else limit:.2%}: neither "
            "their end nor the token limit, for example a content filter or a server that gave up; see to "
            "the server, remove the stage's work directory and run again"
        )
    failed = [row for row in rows if is_aborted(row) or is_parser_failure(row)]
    if limit is None or not _exceeds(failed, rows, limit):
        return None
    return (
        f"{_share(failed, rows)} responses ended without a readable answer (finish reasons: "
        f"{finish_reasons(rows)}), allowed are {limit:.2%} (evaluate.max_parser_failure_rate); one ends "
        f"{failed[0]['response'][-60:]!r}"
    )


def _exceeds(some: Sequence[Row], rows: Sequence[Row], limit: float | None) -> bool:
    return len(some) / len(rows) > (MAX_FAULT_RATE if limit is None else limit)


def _share(some: Sequence[Row], rows: Sequence[Row]) -> str:
    return f"{len(some) / len(rows):.2%} of {len(rows)}"


def _shards(context: StageContext, benchmark: Benchmark, folder: Path) -> list[Shard]:
    from training.generation.rollouts import ShardPlan
    from training.generation.samples import Draw

    plan = ShardPlan(
        directory=folder / benchmark.name,
        problems=benchmark.problems,
        samples_per_problem=benchmark.samples_per_problem,
        problems_per_shard=context.config.evaluate.problems_per_shard,
        # the same noise for both policies: less of the difference between them is chance
        key_prefix="evaluate",
        requests_of=requests_in_any_order(context.config.seed),
    )
    return plan.shards(Draw(benchmark.sampling, benchmark.max_response_tokens, plan.key_prefix))


def _server(context: StageContext, name: str) -> ServerAddress | None:
    runtime = context.runtime
    if runtime.evaluation_engine != "openai":
        return None
    from training.generation.engines.openai_engine import server_address

    return server_address(
        runtime.openai_base_url,
        runtime.openai_model,
        name,
        runtime.openai_concurrency,
        runtime.openai_timeout_seconds,
    )


def _concatenate(shards: Sequence[Path], target: Path) -> None:
    """One file of all shards, read one after the other."""
    import pyarrow.parquet as pq

    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_suffix(".partial")
    with pq.ParquetWriter(temporary, pq.read_schema(shards[0])) as writer:
        for shard in shards:
            writer.write_table(pq.read_table(shard))
    temporary.replace(target)
