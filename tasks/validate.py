"""Stage validate: does the prepared data hold what the later stages take for granted?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tasks.expectations.runner import Finding, run_suites
from tasks.expectations.suites import STOP, suites
from tasks.expectations.view import parts_view, problems_view, traces_view
from tasks.stage import StageContext
from vcppo.errors import DataError
from vcppo.files import write_json_atomic

PREPARED = Path("data/prepared")


def run(context: StageContext) -> dict[str, Any]:
    """Write data/validation/ (result.json, Data Docs) and metrics/validate.json. Returns those metrics.

    Raises DataError if an expectation with severity stop fails, if a check raised, or if fewer expectations
    ran than were asked for; what was found by then lies in the work directory.
    """
    from training.models import load_tokenizer

    data = context.config.data
    checks = suites(data)  # first: a wrong name in data.severity must not wait for the tables
    tokenizer = load_tokenizer(context.config.model)
    problems = problems_view(PREPARED, data, tokenizer)
    traces = traces_view(PREPARED, problems, tokenizer)
    context.say(f"{len(problems)} problems, {len(traces)} SFT traces")
    frames = {"problems": problems, "traces": traces, "parts": parts_view(problems, data)}
    out = context.out("data/validation")
    findings = run_suites({name: (frames[name], checks[name]) for name in frames}, out / "docs")
    expected = sum(map(len, checks.values()))
    metrics = summary(findings, expected)
    metrics |= {
        "problems": len(problems),
        "sft_traces": len(traces),
        "max_prompt_tokens": int(problems["prompt_tokens"].max()),
    }
    write_json_atomic(out / "result.json", [finding.to_json() for finding in findings])
    write_json_atomic(context.out("metrics/validate.json"), metrics)
    judge(findings, expected, out)
    for finding in findings:
        if finding.outcome == "failed":
            context.say(f"warning: {finding.line()}")
    context.say(f"{metrics['passed']} of {expected} expectations hold")
    return metrics


def summary(findings: list[Finding], expected: int) -> dict[str, int]:
    """How many expectations were asked for, ran, held, failed to stop or to warn, and raised."""
    failed = [finding for finding in findings if finding.outcome == "failed"]
    return {
        "expected": expected,
        "ran": len(findings),
        "passed": sum(finding.outcome == "passed" for finding in findings),
        "failed_stop": sum(finding.severity == STOP for finding in failed),
        "failed_warn": sum(finding.severity != STOP for finding in failed),
        "raised": sum(finding.outcome == "raised" for finding in findings),
    }


def judge(findings: list[Finding], expected: int, out: Path) -> None:
    """Raise DataError unless every expectation ran and none of severity stop failed. out: where the results
    lie."""
    failed = [finding for finding in findings if finding.outcome == "failed" and finding.severity == STOP]
    raised = [finding for finding in findings if finding.outcome == "raised"]
    parts = []
    if failed:
        parts.append("\n".join([f"{len(failed)} of {expected} expectations fail:", *_lines(failed)]))
    if raised:
        parts.append(
            "\n".join([f"{len(raised)} checks broke, which says nothing about the data:", *_lines(raised)])
        )
    if len(findings) != expected:
        parts.append(f"only {len(findings)} of {expected} expectations ran; what was lost was not checked")
    if parts:
        raise DataError("\n".join([f"{PREPARED}: " + "\n".join(parts), f"Details: {out}"]))


def _lines(findings: list[Finding]) -> list[str]:
    return [f"  - {finding.line()}" for finding in findings]
