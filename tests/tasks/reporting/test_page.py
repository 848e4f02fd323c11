"""The page of a finished run, of an incomplete one, of a hostile one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tasks.reporting import evaluation, provenance, samples
from tasks.reporting.curves import TRAINING, value_by_position
from tasks.reporting.inputs import Results, read_results
from tasks.reporting.page import render
from tasks.train import plot_table, summarise
from tests.tasks.reporting.finished_run import ROOT, build_run, results_of, rollout_rows, step_metrics
from tests.tasks.reporting.html_page import Page
from vcppo.config import Config, load_params
from vcppo.errors import DataError
from vcppo.files import write_json_atomic

HOSTILE = (
    "</pre></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;{{ 7 * 7 }}\x00\x1b[31m"
)


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


def test_the_page_shows_where_guards_warned_and_how_the_critic_does_on_each_kind_of_response(
    results: Results, config: Config
) -> None:
    train = results.metrics["train"]
    train = {**train, "guards": {**train["guards"], "kl": {"outside_since": 14}}}
    words = Page(render(replace(results, metrics={**results.metrics, "train": train}), config)).words
    assert "Guard value_bias warned at step 4." in words
    assert "Guard kl: outside its limit from step 14 to the end." in words
    minus = "\N{MINUS SIGN}"
    assert f"right responses 9 0.400 1.00 {minus}0.600" in words
    assert f"30 to 41 tokens 5 0.250 0.500 {minus}0.250" in words
    assert not re.search(r"wrong responses \d", words), "there were none"


def test_advantages_by_position_are_drawn_of_training_steps(results: Results) -> None:
    pretrained, first, last = value_by_position(results).drawings
    assert [line.label for line in pretrained.lines] == ["value", "return"]
    for drawing in (first, last):
        assert [line.label for line in drawing.lines] == ["value", "return", "advantage"]


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
            if not key.startswith(("critic/v", "critic/e", "pos", "gae"))
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
        "Value bias; Explained variance; Value loss; Value of right and wrong responses; "
        "Lambda of the policy." in words
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


def test_nested_metrics_are_shown_flat() -> None:
    metrics = {"a": {"b": 0.5, "c": {"d": None}}, "reasons": [], "ks": [1, 4], "groups": [{"x": 1}, {"x": 2}]}
    assert provenance.flat(metrics) == [
        ("a.b", "0.500"), ("a.c.d", "\N{EN DASH}"), ("reasons", "none"), ("ks", "1, 4"),
        ("groups", "2 entries"),
    ]  # fmt: skip
