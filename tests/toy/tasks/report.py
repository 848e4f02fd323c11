"""Toy stage: a page."""

from __future__ import annotations

from tasks.stage import StageContext


def run(context: StageContext) -> dict[str, int]:
    context.out("reports").mkdir(exist_ok=True)
    (context.out("reports") / "index.html").write_text("<p>toy</p>\n")
    return {"pages": 1}
