"""The stage report through `python -m tasks report`."""

from __future__ import annotations

from tests.tasks.conftest import Workspace
from tests.tasks.reporting.finished_run import ROOT, build_run, rollout_rows, write_rows
from vcppo import records
from vcppo.errors import DataError
from vcppo.pipeline import load_pipeline


def test_the_stage_writes_one_page_and_the_same_one_again(workspace: Workspace) -> None:
    build_run(workspace.path)
    pages = []
    for _ in range(2):
        done = workspace.run("report")
        assert done.returncode == 0, done.stderr
        pages.append((workspace.path / "reports/index.html").read_bytes())
    assert pages[0] == pages[1]
    assert [file.name for file in (workspace.path / "reports").iterdir()] == ["index.html"]
    assert "The records agree" in pages[0].decode()
    record = records.read_record(workspace.path / "records/report.json")
    assert record.metrics == {"characters": len(pages[0].decode()), "stages": 8, "mismatches": 0}


def test_the_stage_names_a_malformed_input_and_leaves_no_page(workspace: Workspace) -> None:
    build_run(workspace.path)
    (workspace.path / "plots/train.csv").write_text("step,score\n1\n", encoding="utf-8")
    done = workspace.run("report")
    assert done.returncode == DataError.exit_code
    assert "plots/train.csv: row 2 has 1 cells, the header has 2" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not (workspace.path / "reports").exists()


def test_a_sample_that_changed_since_it_was_recorded_is_told(workspace: Workspace) -> None:
    build_run(workspace.path)
    write_rows(workspace.path / "data/evaluation/after.parquet", rollout_rows("after", "running_sum"))
    assert workspace.run("report").returncode == 0
    html = (workspace.path / "reports/index.html").read_text(encoding="utf-8")
    assert "Does not fit together: data/evaluation: changed since it was recorded" in html
    assert "The records agree" not in html


def test_the_report_reads_the_record_of_every_other_stage_and_no_other_stage_reads_one() -> None:
    stages = load_pipeline(ROOT)
    readers = {
        name: [dep for dep in stage.deps if dep.startswith("records/")] for name, stage in stages.items()
    }
    assert readers.pop("report") == [f"records/{name}.json" for name in stages if name != "report"]
    assert not any(readers.values())
