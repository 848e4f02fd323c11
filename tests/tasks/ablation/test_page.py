"""The report of a made-up study, and the stage that writes it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import yaml

from tasks import ablation_report
from tasks.ablation.page import render
from tasks.ablation.pretraining import slow_phase
from tasks.ablation.results import read_study
from tasks.ablation.summary import summarise
from tasks.reporting.plot import Chart, Series, draw
from tasks.stage import StageContext
from tests.tasks.ablation.made_up_study import ABLATION, critic, write_config, write_study
from tests.tasks.reporting.html_page import Page
from vcppo.config import Config, Runtime, load_params
from vcppo.errors import ConfigurationError
from vcppo.pipeline import StageSpec

OUTS = ("metrics/ablation.json", "plots/ablation.csv", "ablation/report")


def html_of(path: Path, config: Config) -> str:
    assert config.ablation is not None
    study = read_study(path / "data/ablation", config.ablation)
    return render(study, summarise(study, config), config)


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("study")
    write_study(path / "data/ablation")
    return html_of(path, write_config(path))


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_the_page_needs_nothing_but_itself_and_is_well_formed(page: Page) -> None:
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "image", "use"}
    assert page.open == [] and page.faults == []
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {(link["href"] or "")[1:] for link in page.all("a")}
    assert targets <= set(ids)
    assert all(th.get("scope") in ("col", "row") for th in page.all("th"))


def test_tables_stand_beside_the_papers_figures_and_begin_with_the_sft_policy(page: Page) -> None:
    assert "SFT policy \N{EN DASH} \N{EN DASH} 0.550 [0.510, 0.590] \N{EN DASH} 61.0" in page.words
    assert "VC-PPO (0.95 / 1.0) 3 0.890 \N{PLUS-MINUS SIGN} 0.025 0.940 \N{PLUS-MINUS SIGN} 0.025 41.9 %" in (
        page.words
    )
    assert "length collapse stopped 1; length collapse warned in 3, first at step 5" in page.words
    assert "value bias at step 1" in page.words and "advantage of stopping at the end" in page.words


def test_claims_that_fail_and_comparisons_within_chance_are_shown(page: Page) -> None:
    assert "VC-PPO (0.95 / 1.0) ends above GRPO. no paired difference" in page.words
    assert "VC-PPO (0.95 / 1.0) GRPO end 3 +0.040" in page.words
    assert "VC-PPO (0.95 / 1.0) GRPO step 4 3 +0.040" in page.words
    assert "GRPO step 8" not in page.words


def test_every_row_of_a_table_is_drawn_with_its_band(page: Page) -> None:
    charts = [svg for svg in page.all("svg") if "aria-hidden" not in svg]
    # eight curves of each table, two kinds of critic by position, six of the pretraining
    assert len(charts) == 2 * 8 + 2 + 6
    bands = [polygon["class"] for polygon in page.all("polygon")]
    assert {"band m1", "band m2", "band m3"} <= set(bands)
    assert "The same critic and returns: lambda_actor 1.0." in page.words


def test_a_stopped_run_is_told_with_its_reason_as_text(page: Page, html: str) -> None:
    assert "stopped: length_collapse guard length_collapse, steps 5 to 6: <too short>" in page.words
    assert "<too short>" not in html
    assert "11 runs finished, a guard stopped 1." in page.words
    assert "A run that a guard stopped counts with" in page.words


def test_the_notes_say_what_was_not_varied_and_what_cannot_be_compared(page: Page) -> None:
    assert "There is one SFT policy" in page.words
    assert "128 problems, 4 samples each" in page.words
    assert "With lam_critic below 1" in page.words
    assert "Only the order of the rows can be compared" in page.words


def test_a_study_without_critic_stopping_or_pretraining_leaves_them_out(tmp_path: Path) -> None:
    write_study(tmp_path / "data/ablation", {"grpo": (0.9, 0.8)}, stopping=False, stopped=None)
    (tmp_path / "data/ablation/critics.json").write_text("[]", encoding="utf-8")
    rows = [{**ABLATION["rows"][0], "paper": None}]
    config = write_config(tmp_path, {"rows": rows, "tables": [{"title": "Only GRPO", "rows": ["grpo"]}]})
    page = Page(html_of(tmp_path, config))
    assert page.open == []
    assert (
        "Not shown, because the metrics of these runs holds no such numbers: Value bias; Explained variance; "
        "Advantage of stopping minus that of going on; Hazard of stopping." in page.words
    )
    assert "value bias at step 1" not in page.words
    assert "The paper's figures" not in page.words and "A run that a guard stopped" not in page.words
    assert not [link for link in page.all("a") if link["href"] in ("#findings", "#comparisons")]


def test_the_slow_phase_begins_where_a_tenth_of_the_fall_is_left() -> None:
    losses = [1.0, 0.5, 0.19, 0.11, 0.12, 0.1]
    curve = [{"step": index, "held_out_value_loss": loss} for index, loss in enumerate(losses)]
    assert [line["step"] for line in slow_phase(curve)] == [2, 3, 4, 5]
    assert slow_phase([]) == []
    slow = slow_phase(critic(1.0, 96)["curve"])
    assert 10 <= slow[0]["step"] <= 16 and slow[-1]["step"] == 96


def test_a_band_breaks_where_it_has_a_hole_and_widens_the_axis() -> None:
    x = [1.0, 2.0, 3.0, 4.0, 5.0]
    low, high = [0.0, -1.0, None, 1.0, 1.0], [2.0, 3.0, None, 9.0, 2.0]
    drawing = draw(Chart("k", "t", "x", "u", (Series("a", x, [1.0, 1.0, 1.0, 1.0, 1.0], 1, low, high),)))
    (line,) = drawing.lines
    assert [len(points.split()) for points in line.bands] == [4, 4]
    assert len(line.paths) == 1
    heights = [float(point.split(",")[1]) for points in line.bands for point in points.split()]
    assert min(heights) >= drawing.top - 0.1 and max(heights) <= drawing.bottom + 0.1


def context_of(path: Path, config: Config) -> StageContext:
    spec = StageSpec("ablation_report", ("data/ablation",), ("ablation",), OUTS)
    return StageContext(spec, config, Runtime(), path / "work", "0" * 16)


def test_the_stage_writes_its_three_outputs_and_says_what_does_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path / "data/ablation")
    context = context_of(tmp_path, write_config(tmp_path))
    assert ablation_report.run(context) == {
        "runs": 12,
        "runs_stopped": 1,
        "findings_that_hold": 10,
        "findings_that_do_not": 2,
    }
    assert "does not hold: VC-PPO (0.95 / 1.0) ends above GRPO." in capsys.readouterr().out
    out = tmp_path / "work/out"
    assert json.loads((out / OUTS[0]).read_text(encoding="utf-8"))["rows"]["vc_ppo"]["num_runs"] == 3
    with (out / OUTS[1]).open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["row"] for row in rows} == {"grpo", "ppo", "vc_ppo", "lam_actor_1"}
    assert [row["value_bias"] for row in rows if row["row"] == "grpo"] == [""] * 8
    assert (out / OUTS[2] / "index.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_profile_without_a_study_is_refused(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    values = yaml.safe_load((tmp_path / "params.yaml").read_text(encoding="utf-8"))
    del values["ablation"]
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    config = load_params(tmp_path / "params.yaml")
    with pytest.raises(ConfigurationError, match="no section ablation"):
        ablation_report.run(context_of(tmp_path, config))
