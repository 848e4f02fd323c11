"""The report page from a workspace as the other stages leave it."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasks.evaluation.figures import benchmark_metrics, paired_metrics
from tasks.reporting import evaluation, provenance, samples
from tasks.reporting.curves import TRAINING, panel
from tasks.reporting.inputs import Results, Table, read_results
from tasks.reporting.numbers import duration, figure, tick_labels, ticks
from tasks.reporting.page import render
from tasks.reporting.plot import MOST_POINTS, Chart, Series, draw, thin
from tasks.train import PLOTTED, plot_table, summarise
from vcppo import records
from vcppo.config import Config, load_params
from vcppo.errors import DataError
from vcppo.files import path_size, sha256_path, write_json_atomic
from vcppo.pipeline import load_pipeline

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = (
    "</pre></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;{{ 7 * 7 }}\x00\x1b[31m"
)
NUM_STEPS = 15
QUESTIONS, SAMPLES = 24, 4
VOID = {"meta", "br", "line", "circle", "rect", "path", "polyline"}


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
        "actor/pg_loss": -0.01,
        "actor/pg_clipfrac": 0.004 * done,
        "actor/ppo_kl": 2e-5 * (1 + math.sin(step)),
        "actor/entropy_loss": 0.4 - 0.2 * done,
        "perf/throughput": 3300.0,
        "perf/total_num_tokens": 20000,
        "timing_s/step": 4.0 + 0.2 * math.sin(step),
    }
    for index in range(10):
        line[f"position/value_{index}"] = -0.1 + 0.6 * done + 0.03 * index
        line[f"position/return_{index}"] = 0.1 + 0.8 * done
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
    for room in ("tasks", "training", "vcppo"):
        (path / room).symlink_to(ROOT / room)
    for name in ("dvc.yaml", "params.yaml"):
        (path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
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
        "by_correctness": {"right": {"value": 0.4, "count": 9}},
    }
    write_json_atomic(path / "metrics/pretrain_critic.json", critic)


def _build_records(path: Path, config: Config) -> None:
    made: dict[str, records.Artifact] = {}
    for index, (name, stage) in enumerate(load_pipeline(path).items()):
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
    return read_results([Path(f"records/{name}.json") for name in load_pipeline(path)], path)


class Page(HTMLParser):
    """Tags, ids, links and text of a page; `unclosed` is empty when every tag is closed in its order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID or (tag in ("circle", "rect", "path")):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"{self.getpos()}: </{tag}>")

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run")
    build_run(path)
    return path


@pytest.fixture(scope="module")
def results(run: Path) -> Results:
    return results_of(run)


@pytest.fixture(scope="module")
def config(run: Path) -> Config:
    return load_params(run / "params.yaml")


@pytest.fixture(scope="module")
def page(results: Results, config: Config) -> Page:
    return Page(render(results, config))


def test_the_stage_writes_one_page_and_the_same_one_again(tmp_path: Path) -> None:
    from tests.tasks.conftest import Workspace

    build_run(tmp_path)
    workspace = Workspace(tmp_path)
    pages = []
    for _ in range(2):
        done = workspace.run("report")
        assert done.returncode == 0, done.stderr
        pages.append((tmp_path / "reports/index.html").read_bytes())
    assert pages[0] == pages[1]
    assert [file.name for file in (tmp_path / "reports").iterdir()] == ["index.html"]
    assert "The records agree" in pages[0].decode()
    record = records.read_record(tmp_path / "records/report.json")
    assert record.metrics == {"characters": len(pages[0].decode()), "stages": 8, "mismatches": 0}


def test_the_stage_names_a_malformed_input_and_leaves_no_page(tmp_path: Path) -> None:
    from tests.tasks.conftest import Workspace

    build_run(tmp_path)
    (tmp_path / "plots/train.csv").write_text("step,score\n1\n", encoding="utf-8")
    done = Workspace(tmp_path).run("report")
    assert done.returncode == DataError.exit_code
    assert "plots/train.csv: row 2 has 1 cells, the header has 2" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "reports").exists()


def test_a_sample_that_changed_since_it_was_recorded_is_told(tmp_path: Path) -> None:
    from tests.tasks.conftest import Workspace

    build_run(tmp_path)
    write_rows(tmp_path / "data/evaluation/after.parquet", rollout_rows("after", "running_sum"))
    assert Workspace(tmp_path).run("report").returncode == 0
    html = (tmp_path / "reports/index.html").read_text(encoding="utf-8")
    assert "Does not fit together: data/evaluation: changed since it was recorded" in html
    assert "The records agree" not in html


def test_the_page_needs_nothing_but_itself(page: Page) -> None:
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "image", "use"}
    assert "default-src 'none'" in str(page.all("meta"))
    links = [link["href"] or "" for link in page.all("a")]
    assert all(link.startswith(("#", "../records/", "../data/")) for link in links)
    style = (ROOT / "tasks/reporting/templates/style.css").read_text(encoding="utf-8")
    assert "url(" not in style and "@import" not in style


def test_the_page_is_well_formed_and_every_reference_inside_it_has_its_target(page: Page) -> None:
    assert page.faults == [] and page.open == []
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = [i for _, a in page.tags for i in (a.get("aria-labelledby") or "").split()]
    assert set(named) | {
        (link["href"] or "")[1:] for link in page.all("a") if link["href"][:1] == "#"
    } <= set(ids)  # type: ignore[index]


def test_every_chart_has_a_title_and_a_description_and_every_table_column_a_header(page: Page) -> None:
    charts = [svg for svg in page.all("svg") if "aria-hidden" not in svg]
    assert len(charts) == 1 + len(TRAINING) + 3 + 3 + 1
    assert all(svg["role"] == "img" and svg["aria-labelledby"] for svg in charts)
    assert all(th.get("scope") in ("col", "row") for th in page.all("th"))


def test_the_page_says_what_was_trained_and_from_what_to_what(page: Page, results: Results) -> None:
    assert "VC-PPO on a tiny model, seed 1: 15 steps of 192 prompts" in page.words
    assert "lam_actor 0.95, lam_critic 1.0" in page.words
    row = results.evaluation["before"]["running_sum"]
    assert f"accuracy before (SFT) {evaluation.with_interval(row)} accuracy after training" in page.words
    assert re.search(r"difference \+0\.\d{3} \[\+0\.\d{3}, \+0\.\d{3}\] : beyond chance", page.words)
    after = results.evaluation["after"]["running_sum"]
    assert f"running_sum after training {after['average_at_k']:.3f}" in page.words
    assert after["average_at_k"] > row["average_at_k"] + 0.1
    assert "pass@4" in page.words and "maj@4" in page.words and "24 \N{MULTIPLICATION SIGN} 4" in page.words


def test_the_page_shows_configuration_stages_hashes_and_code(page: Page, results: Results) -> None:
    assert "lam_critic: 1.0" in page.words
    hrefs = [link["href"] for link in page.all("a")]
    assert all(f"../records/{name}.json" in hrefs for name in results.records)
    assert results.records["evaluate"].outputs[0].sha256 in page.words
    commit = "0123456789abcdef0123456789abcdef01234567"
    assert f"{commit}, with uncommitted changes (train)" in page.words
    assert (
        "killed, succeeded" in page.words
        and "torch 2.13.0" in page.words
        and "s3fs not installed" in page.words
    )
    assert "12 duplicate" in page.words and "3 gold unreadable" in page.words


def test_hostile_text_from_data_stays_text(tmp_path: Path) -> None:
    config = build_run(tmp_path, text=HOSTILE.replace("\x00", ""), answer=HOSTILE)
    results = results_of(tmp_path)
    card = {"sources": [{**results.card["sources"][0], "removed": {HOSTILE: 1}}], "files": {HOSTILE: {}}}
    card["files"][HOSTILE] = {"rows": 1, "bytes": 1, "sha256": HOSTILE}
    metrics = {**results.metrics, "sft": {HOSTILE: HOSTILE, "lone surrogate": "\ud800"}}
    html = render(replace(results, card=card, metrics=metrics), config, [HOSTILE])
    hostile = Page(html)
    assert hostile.faults == [] and hostile.open == []
    assert not hostile.all("script") and not hostile.all("img")
    assert not [a for _, attributes in hostile.tags for a in attributes if a.startswith("on")]
    assert "{{ 7 * 7 }}" in hostile.words and "<script>alert(1)</script>" in hostile.words
    assert "\x00" not in html and "\x1b" not in html and "\N{SYMBOL FOR NULL}" in html
    html.encode("utf-8")


def test_a_run_without_critic_leaves_its_curves_out_and_says_so(tmp_path: Path) -> None:
    build_run(tmp_path)
    values = yaml.safe_load((tmp_path / "params.yaml").read_text(encoding="utf-8"))
    values["train"] |= {"algorithm": "grpo", "samples_per_prompt": 2}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    steps = [
        {
            key: value
            for key, value in step_metrics(step).items()
            if not key.startswith(("critic/v", "critic/e", "pos"))
        }
        for step in (1, 2)
    ]
    (tmp_path / "plots/train.csv").write_text(plot_table(steps), encoding="utf-8")
    lines = "".join(json.dumps(step) + "\n" for step in steps)
    (tmp_path / "data/training_rollouts/metrics.jsonl").write_text(lines, encoding="utf-8")
    write_json_atomic(tmp_path / "metrics/train.json", summarise(steps, None))
    (tmp_path / "plots/sft.csv").write_text("step,loss\n", encoding="utf-8")
    words = Page(render(results_of(tmp_path), load_params(tmp_path / "params.yaml"))).words
    assert "GRPO on a tiny model" in words and "without a critic" in words
    assert (
        "Not shown, because plots/train.csv holds no such numbers: "
        "Value bias; Explained variance; Value loss." in words
    )
    assert "Not shown, because plots/sft.csv holds no such numbers: SFT loss." in words
    assert "Value by position at training step 1; Value by position at training step 2." in words


def test_only_the_evaluation_must_be_there(tmp_path: Path, config: Config) -> None:
    row = {"average_at_k": 0.5, "interval_95": [0.4, 0.6], "answer_rate": 1.0, "truncation_rate": 0.0}
    row |= {"mean_response_tokens": 7.0, "num_problems": 8, "samples_per_problem": 4}
    with pytest.raises(DataError, match=r"evaluate\.json: holds no evaluation of both policies.*dvc repro"):
        read_results([], tmp_path)
    write_json_atomic(tmp_path / "metrics/evaluate.json", {"before": {"toy": row}, "after": {"toy": row}})
    page = Page(render(read_results([], tmp_path), config))
    assert page.faults == []
    assert "without a paired comparison" in page.words and "No run records are there." in page.words
    assert "No samples are there." in page.words and "names no source" in page.words


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("metrics/sft.json", "{", r"sft\.json: is not valid JSON"),
        ("metrics/sft.json", "[]", r"sft\.json: holds list, expected an object"),
        (
            "data/training_rollouts/metrics.jsonl",
            '{"step": 1}\n{"ste',
            r"metrics\.jsonl:2: is no JSON object",
        ),
        ("data/evaluation/after.parquet", "no parquet", r"after\.parquet: cannot be read"),
        ("records/train.json", "{}", r"train\.json: is no readable run record"),
    ],
)
def test_a_malformed_file_is_named(tmp_path: Path, path: str, content: str, message: str) -> None:
    build_run(tmp_path)
    (tmp_path / path).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        results_of(tmp_path)


def test_the_promotion_gate_and_the_way_of_drawing_are_told_when_the_evaluation_has_them(
    results: Results, config: Config
) -> None:
    refused = {"passed": False, "reasons": ["toy: average 0.1 is below the minimum 0.2"]}
    settings = {"running_sum": {"samples_per_problem": 4, "temperature": 1.0, "top_k": 0}}
    judged = replace(results, evaluation={**results.evaluation, "promotion": refused, "settings": settings})
    words = Page(render(judged, config)).words
    assert "did not pass the promotion gate: toy: average 0.1 is below the minimum 0.2." in words
    assert "samples per problem 4, temperature 1.00, top k 0" in words
    assert evaluation.promotion({"promotion": {"passed": True, "reasons": []}}) is not None
    assert evaluation.promotion(results.evaluation) is None


def test_the_verdict_follows_interval_and_test() -> None:
    paired = {"low": 0.1, "high": 0.3, "p_value": 0.001, "confidence": 0.95}
    assert evaluation.verdict(paired) == "beyond chance"
    assert evaluation.verdict({**paired, "low": -0.3, "high": -0.1}) == "beyond chance"
    assert evaluation.verdict({**paired, "low": -0.1, "p_value": 0.2}) == "within what chance gives"
    assert "disagree" in evaluation.verdict({**paired, "p_value": 0.06})


def test_the_smallest_difference_that_would_be_found_is_told_unless_no_question_moved(
    results: Results,
) -> None:
    (told,) = [h for h in evaluation.headlines(results.evaluation) if h.benchmark == "running_sum"]
    assert re.search(r"p = 0\.0001\. A true difference of 0\.\d{3} would be found 80 times", told.detail)
    before = results.evaluation["before"]
    paired = {**results.evaluation["difference"]["running_sum"], "detectable_difference": 0.0, "p_value": 1.0}
    same = {"before": before, "after": before, "difference": {"running_sum": paired}}
    assert evaluation.headlines(same)[1].detail.endswith("sign-flip test p = 1.0000.")


def test_samples_are_two_right_and_two_wrong_ones_of_different_problems() -> None:
    rows = rollout_rows("before", "running_sum")
    chosen = samples.choose(rows)
    assert [sample["status"] for sample in chosen] == ["right", "right", "wrong", "wrong"]
    assert len({sample["id"] for sample in chosen[:2]}) == len({sample["id"] for sample in chosen[2:]}) == 2
    one_problem = [row for row in rows if row["id"] == "running_sum-000" and row["status"] == "right"]
    assert len(samples.choose(one_problem)) == 2
    assert samples.choose([]) == []


def test_a_long_text_loses_its_middle() -> None:
    shown = samples.shorten("a" * 50 + "b" * 1000 + "c" * 50, most=100)
    assert shown.startswith("a" * 50 + "\n[") and shown.endswith("]\n" + "c" * 50)
    assert "1,000 characters left out" in shown
    assert samples.shorten("abc", most=3) == "abc"


def test_versions_that_differ_between_stages_are_told_apart(results: Results) -> None:
    train = results.records["train"]
    newer = train.model_copy(update={"environment": {"python": "3.11.2", "packages": {"torch": "2.11.0"}}})
    rows = {
        row["package"]: row["versions"] for row in provenance.versions({**results.records, "train": newer})
    }
    assert rows["Python"] == "3.11.2"
    assert rows["torch"].startswith("2.13.0 (prepare, ") and rows["torch"].endswith("; 2.11.0 (train)")


def chart(values: Sequence[float | None], **more: Any) -> Chart:
    x = [float(step) for step in range(1, len(values) + 1)]
    return Chart("k", "Title", "step", "unit", (Series("line", x, values),), **more)


def test_a_hole_breaks_the_line_and_a_lone_point_has_a_marker() -> None:
    (line,) = draw(chart([1.0, 2.0, None, 3.0, None])).lines
    assert len(line.paths) == 1
    assert [marker.text for marker in line.markers][-1] == "line, step 4: 3.00"
    (long,) = draw(chart([*map(float, range(100)), None, 5.0])).lines
    assert [marker.text for marker in long.markers] == ["line, step 102: 5.00"]


@pytest.mark.parametrize("values", [[0.0], [3.0, 3.0], [-5.0, None], [1e-9, 2e-9], [1e7, -1e7], [0.999, 1.0]])
def test_every_point_and_tick_lies_inside_the_plot(values: list[float | None]) -> None:
    drawing = draw(chart(values))
    inside = [*(t.at for t in drawing.y_ticks), *(m.y for line in drawing.lines for m in line.markers)]
    assert inside and all(drawing.top - 0.1 <= y <= drawing.bottom + 0.1 for y in inside)
    across = [*(t.at for t in drawing.x_ticks), *(m.x for line in drawing.lines for m in line.markers)]
    assert across and all(drawing.left - 0.1 <= x <= drawing.right + 0.1 for x in across)
    labels = [tick.label for tick in drawing.y_ticks]
    assert len(labels) == len(set(labels)) >= 2


def test_values_below_the_lowest_are_drawn_at_the_edge_and_the_note_says_so() -> None:
    drawing = draw(chart([-1892.0, 0.5], lowest=-1.0, zero=True))
    assert drawing.lines[0].markers[0].y == pytest.approx(drawing.bottom)
    assert drawing.lines[0].markers[0].text.endswith("\N{MINUS SIGN}1,892")
    assert drawing.note == "Values below \N{MINUS SIGN}1.00 are drawn at the lower edge."
    assert draw(chart([0.1, 0.5], lowest=-1.0)).note == ""


def test_thinning_keeps_peaks() -> None:
    points = [(float(x), 100.0 if x == 777 else -50.0 if x == 1234 else 0.0) for x in range(5000)]
    kept = thin(points)
    assert len(kept) <= MOST_POINTS
    assert (777.0, 100.0) in kept and (1234.0, -50.0) in kept
    assert kept == sorted(kept)
    assert thin(points[:MOST_POINTS]) == points[:MOST_POINTS]


def test_every_plotted_training_metric_that_a_curve_names_is_a_column_of_the_train_stage() -> None:
    assert {column for curve in TRAINING for column, _, _ in curve.lines} <= set(PLOTTED)


def test_an_empty_table_gives_no_chart_but_names_it() -> None:
    shown = panel(TRAINING[:1], Table({"step": ["1"], "accuracy": ["nan"]}), "x", "step")
    assert (shown.drawings, shown.left_out) == ((), ("Accuracy of training responses",))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\N{EN DASH}"), (True, "yes"), (12345, "12,345"), (-2, "\N{MINUS SIGN}2"), (0.0, "0"),
        (0.12345, "0.123"), (83.456, "83.5"), (12345.6, "12,346"), (2.6e-9, "2.6e\N{MINUS SIGN}9"),
        (math.nan, "nan"), ("text", "text"),
    ],
)  # fmt: skip
def test_figures(value: Any, text: str) -> None:
    assert figure(value) == text


def test_nested_metrics_are_shown_flat() -> None:
    metrics = {"a": {"b": 0.5, "c": {"d": None}}, "reasons": [], "ks": [1, 4], "groups": [{"x": 1}, {"x": 2}]}
    assert provenance.flat(metrics) == [
        ("a.b", "0.500"), ("a.c.d", "\N{EN DASH}"), ("reasons", "none"), ("ks", "1, 4"),
        ("groups", "2 entries"),
    ]  # fmt: skip


def test_durations() -> None:
    assert [duration(s) for s in (4.25, 59.97, 200, 3600, 19000)] == [
        "4.2 s", "60.0 s", "3 min 20 s", "1 h 0 min", "5 h 16 min",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ends", "labels"),
    [
        ((0.0, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ((0.0, 83.0), ["0", "20", "40", "60", "80"]),
        ((-0.1, 0.1), ["\N{MINUS SIGN}0.10", "\N{MINUS SIGN}0.05", "0.00", "0.05", "0.10"]),
    ],
)
def test_ticks_are_round(ends: tuple[float, float], labels: list[str]) -> None:
    assert tick_labels(ticks(*ends)) == labels
    assert ticks(0.5, 2.5, whole=True) == [1.0, 2.0]
