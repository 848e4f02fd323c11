"""What the other stages leave of a run that went well, small: the input of the report."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.evaluation.figures import benchmark_metrics, paired_metrics
from tasks.reporting.inputs import Results, read_results
from tasks.train import plot_table, summarise
from vcppo import records
from vcppo.config import Config, load_params
from vcppo.files import path_size, sha256_path, write_json_atomic
from vcppo.pipeline import load_pipeline

ROOT = Path(__file__).resolve().parents[3]
NUM_STEPS = 15
QUESTIONS, SAMPLES = 24, 4


def step_metrics(step: int) -> dict[str, Any]:
    """One line of metrics.jsonl as a good run writes it."""
    done = step / NUM_STEPS
    line = {
        "step": step,
        "critic/score/mean": 0.1 + 0.8 * done,
        "response/accuracy": 0.55 + 0.4 * done,
        "response/length": 61 + 21 * done,
        "response/length_right": 80.5 + 2 * done,
        "response/length_wrong": 35 + 40 * done,
        "response/truncation_rate": 0.01,
        "response/answer_rate": 0.99,
        "critic/value_bias": -0.05 * math.cos(step),
        "critic/explained_variance": 0.3 * done if step > 2 else -12.5,
        "critic/vf_loss": 0.45 - 0.3 * done,
        "critic/vf_clipfrac": 0.0,
        "critic/value_mean_right": 0.2 + done,
        "critic/value_mean_wrong": -0.4,
        "gae/lam_actor": 0.95,
        "guard/value_bias": 1.0 if step == 4 else None,
        "actor/pg_loss": -0.01,
        "actor/pg_clipfrac": 0.004 * done,
        "actor/pg_clipfrac_lower": 0.0,
        "actor/kl_to_sft": 0.1 * done,
        "actor/lm_loss": 0.5,
        "stopping/hazard": 0.05 * (1 - done),
        "stopping/advantage": -0.8,
        "actor/ppo_kl": 2e-5 * (1 + math.sin(step)),
        "actor/entropy_loss": 0.4 - 0.2 * done,
        "perf/throughput": 3300.0,
        "perf/total_num_tokens": 20000,
        "timing_s/step": 4.0 + 0.2 * math.sin(step),
        "timing_s/gen": 1.5,
        "timing_s/values": 0.3,
        "timing_s/adv": 0.02,
        "timing_s/update_critic": 1.0,
        "timing_s/update_actor": 1.1,
    }
    for index in range(10):
        line[f"position/value_{index}"] = -0.1 + 0.6 * done + 0.03 * index
        line[f"position/return_{index}"] = 0.1 + 0.8 * done
        line[f"position/advantage_{index}"] = 0.2 - 0.03 * index
    return line


def rollout_rows(policy: str, benchmark: str, answer: str = "12") -> list[dict[str, Any]]:
    """Rows of data/evaluation/POLICY.parquet: the trained policy is right more often."""
    rows = []
    for question in range(QUESTIONS):
        for sample in range(SAMPLES):
            right = (question * question + 5 * sample) % 11 < (10 if policy == "after" else 6)
            status = "right" if right else ("wrong", "no_answer", "truncated")[(question // 8) % 3]
            text = f"0 + 3 = 3 <step> {question} \\boxed{{{answer}}}\n" * 3
            rows.append(
                {
                    "id": f"{benchmark}-{question:03d}",
                    "data_source": benchmark,
                    "grader": "aime",
                    "sample": sample,
                    "prompt_ids": [1, 2],
                    "response_ids": list(range(83 if right else 40)),
                    "log_probs": [0.0] * (83 if right else 40),
                    "response": text,
                    "num_response_tokens": 83 if right else 40,
                    "finish_reason": "length" if status == "truncated" else "stop",
                    "gold": "12",
                    "status": status,
                    "answer": answer if status in ("right", "wrong") else None,
                    "score": 1.0 if right else -1.0,
                }
            )
    return rows


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows([header, *rows])


def build_run(path: Path, *, text: str = "running_sum", answer: str = "12") -> Config:
    """Everything that the report reads, of a finished run. text: name of a benchmark and source."""
    (path / "params.yaml").write_text(
        (ROOT / "profiles/tiny.yaml").read_text(encoding="utf-8"), encoding="utf-8"
    )
    config = load_params(path / "params.yaml")
    _build_data(path, text, answer)
    _build_metrics(path)
    write_csv(
        path / "plots/sft.csv", ["step", "loss"], [[s, 0.2 + 2 * math.exp(-s / 60)] for s in range(1, 501)]
    )
    write_csv(
        path / "plots/pretrain_critic.csv",
        ["step", "value_loss", "held_out_value_loss", "explained_variance", "value_bias"],
        [
            [s, 0.1 + 0.4 * math.exp(-s / 20), 0.12 + 0.4 * math.exp(-s / 20), s / 500, -0.5 / (s + 1)]
            for s in range(0, 116, 8)
        ],
    )
    write_csv(
        path / "plots/value_by_position.csv",
        ["position", "value", "return", "count"],
        [[(i + 0.5) / 20, -0.2 + 0.01 * i, -0.15, 900] for i in range(20)],
    )
    _build_records(path, config)
    return config


def _build_data(path: Path, text: str, answer: str) -> None:
    before, after = (
        [*rollout_rows(p, text, answer), *rollout_rows(p, "aime24")] for p in ("before", "after")
    )
    write_rows(path / "data/evaluation/before.parquet", before)
    write_rows(path / "data/evaluation/after.parquet", after)
    problems = [
        {
            "prompt": [{"role": "user", "content": f"Add up, modulo 5: {row['id']} {answer}"}],
            "extra_info": {"id": row["id"]},
        }
        for row in before
        if row["sample"] == 0
    ]
    write_rows(path / "data/prepared/eval.parquet", problems)
    by_name = {
        name: {
            benchmark: [r for r in rows if r["data_source"] == benchmark] for benchmark in (text, "aime24")
        }
        for name, rows in (("before", before), ("after", after))
    }
    metrics: dict[str, Any] = {
        name: {benchmark: benchmark_metrics(own, SAMPLES, [1, SAMPLES]) for benchmark, own in groups.items()}
        for name, groups in by_name.items()
    }
    metrics["difference"] = {
        benchmark: paired_metrics(by_name["before"][benchmark], by_name["after"][benchmark], 1)
        for benchmark in (text, "aime24")
    }
    write_json_atomic(path / "metrics/evaluate.json", metrics)
    source = {
        "name": text,
        "kind": "running_sum",
        "origin": f"running_sum:{text}",
        "licence": "generated",
        "grader": "aime",
        "use": "split",
        "rows_in": 4096,
        "removed": {"duplicate": 12, "gold_unreadable": 3},
        "train_rows": 3953,
        "eval_rows": 128,
    }
    file = {"rows": 3953, "bytes": 123456, "sha256": "ab" * 32}
    write_json_atomic(
        path / "data/prepared/card.json", {"sources": [source], "files": {"train.parquet": file}}
    )


def _build_metrics(path: Path) -> None:
    steps = [step_metrics(step) for step in range(1, NUM_STEPS + 1)]
    lines = path / "data/training_rollouts/metrics.jsonl"
    lines.parent.mkdir(parents=True)
    lines.write_text("".join(json.dumps(step) + "\n" for step in steps), encoding="utf-8")
    (path / "plots").mkdir()
    (path / "plots/train.csv").write_text(plot_table(steps), encoding="utf-8")
    write_json_atomic(path / "metrics/train.json", summarise(steps, None))
    write_json_atomic(path / "metrics/validate.json", {"expectations": 31, "passed": 31})
    write_json_atomic(path / "metrics/sft.json", {"enabled": True, "num_traces": 7906, "loss_end": 0.21})
    write_json_atomic(path / "metrics/rollouts.json", {"num_rollouts": 4096, "accuracy": 0.551})
    write_json_atomic(path / "metrics/reward_model.json", {"trained": False})
    critic = {
        "gate_passed": True,
        "gate_reasons": [],
        "by_correctness": {
            "right": {"num_rollouts": 9, "value": 0.4, "return": 1.0, "value_bias": -0.6},
            "wrong": None,
        },
        "by_length": [
            {
                "shortest": 30, "longest": 41, "num_rollouts": 5, "value": 0.25, "return": 0.5,
                "value_bias": -0.25,
            },
        ],
    }  # fmt: skip
    write_json_atomic(path / "metrics/pretrain_critic.json", critic)


def _build_records(path: Path, config: Config) -> None:
    made: dict[str, records.Artifact] = {}
    for index, (name, stage) in enumerate(load_pipeline(ROOT).items()):
        if name == "report":
            continue
        outputs = tuple(
            records.Artifact(path=out, sha256=sha256_path(path / out), bytes=path_size(path / out))
            if (path / out).exists()
            else records.Artifact(path=out, sha256=f"{index:064x}", bytes=1000 * index)
            for out in stage.outs
            if not out.startswith("records/")
        )
        record = records.RunRecord(
            stage=name,
            fingerprint=f"{index:016x}",
            started=f"2026-03-01T02:{index:02d}:00+00:00",
            finished=f"2026-03-01T02:{index:02d}:50+00:00",
            seconds=12.5 * (index + 1),
            inputs=tuple(made[dep] for dep in stage.deps if dep in made),
            outputs=outputs,
            parameters=stage.parameter_values(config),
            configuration=config.model_dump(mode="json"),
            runtime={"device": "cpu"},
            code={"commit": "0123456789abcdef0123456789abcdef01234567", "dirty": name == "train"},
            environment={"python": "3.11.2", "packages": {"torch": "2.13.0", "s3fs": None}},
            attempts=({"attempt": 1, "outcome": "killed"}, {"attempt": 2, "outcome": "succeeded"}),
            metrics={},
        )
        made |= {artifact.path: artifact for artifact in outputs}
        target = path / f"records/{name}.json"
        target.parent.mkdir(exist_ok=True)
        target.write_text(records.render(record), encoding="utf-8")


def results_of(path: Path) -> Results:
    return read_results([Path(f"records/{name}.json") for name in load_pipeline(ROOT)], path)
