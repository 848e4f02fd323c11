"""Stage report: one self-contained HTML page on what was trained, how, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.reporting.inputs import read_results
from tasks.reporting.page import render
from tasks.stage import StageContext
from vcppo.files import write_text_atomic
from vcppo.lineage import trace
from vcppo.records import RECORDS


def run(context: StageContext) -> Mapping[str, Any]:
    """Write reports/index.html, a function of the stage's inputs. Raises DataError for a malformed input."""
    records = [Path(dep) for dep in context.spec.deps if Path(dep).parent == RECORDS]
    results = read_results(records)
    mismatches = (
        trace(Path("data/evaluation"), workspace=Path()).mismatches if "evaluate" in results.records else []
    )
    page = render(results, context.config, mismatches)
    write_text_atomic(context.out("reports") / "index.html", page)
    context.say("reports/index.html")
    return {"characters": len(page), "stages": len(results.records), "mismatches": len(mismatches)}
