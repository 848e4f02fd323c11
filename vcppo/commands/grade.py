"""`python -m vcppo grade --benchmark aime|math|gpqa|steps FILE.jsonl`: grade stored responses.

Reads `{id, response, gold[, finish_reason]}` a line, writes `{id, status, answer}` a line to stdout and a
summary to stderr. A bad line is named by its number and skipped; the command then ends non-zero.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from vcppo.errors import ConfigurationError, DataError, GraderError, VcppoError
from vcppo.grading.graders import grade_batch
from vcppo.grading.result import BENCHMARKS, STATUSES, Grade, GradeItem

_BATCH = 512  # lines graded together, each batch with its canary pair


def add_parser(subparsers: Any) -> None:
    """Add the `grade` command to an argparse sub-parsers object."""
    parser = subparsers.add_parser(
        "grade",
        help="grade stored responses",
        description="Grade {id, response, gold[, finish_reason]} lines; writes {id, status, answer} lines "
        f"to stdout ({', '.join(STATUSES)}) and a summary to stderr.",
        epilog="exit codes: 0 all graded, 2 no standard input, 3 bad lines skipped, no line or no such file, "
        "5 the grader failed, 6 the output cannot be written",
    )
    parser.add_argument("--benchmark", required=True, choices=BENCHMARKS, help="whose rules to grade by")
    parser.add_argument("file", metavar="FILE.jsonl", help="lines to grade; - for stdin")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Grade `args.file` by the rules of `args.benchmark`; returns the exit code."""
    try:
        with ExitStack() as stack:
            return _grade_lines(_open(args.file, stack), args.file, args.benchmark)
    except VcppoError as error:
        print(f"grade: {error}", file=sys.stderr)
        return error.exit_code


def _open(name: str, stack: ExitStack) -> IO[bytes]:
    if name == "-":
        if sys.stdin is None:
            raise ConfigurationError(
                "standard input is closed; pipe lines into it, or name a JSON Lines file"
            )
        return sys.stdin.buffer
    try:
        return stack.enter_context(Path(name).open("rb"))
    except OSError as error:
        raise _unreadable(name, error) from None


def _unreadable(name: str, error: OSError) -> DataError:
    return DataError(f"cannot read {name}: {error.strerror}; name a JSON Lines file, or - for stdin")


def _numbered(source: Iterable[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    try:
        yield from enumerate(source, start=1)
    except OSError as error:
        raise _unreadable(name, error) from None


def _grade_lines(source: Iterable[bytes], name: str, benchmark: str) -> int:
    counts: Counter[str] = Counter()
    num_bad = 0
    for batch in _batches(_numbered(source, name)):
        rows: list[tuple[int, Any, GradeItem]] = []
        for number, line in batch:
            try:
                rows.append((number, *_read_row(line)))
            except DataError as error:
                num_bad += 1
                _name_line(name, number, str(error))
        grades = grade_batch([item for _, _, item in rows], benchmark) if rows else []
        for (number, row_id, _), grade in zip(rows, grades, strict=True):
            counts[grade.status] += 1
            if grade.status == "grader_error":
                _name_line(name, number, f"grader error: {grade.detail}")
            _write(row_id, grade)
    if not counts and not num_bad:
        raise DataError(f"{name} holds no line to grade; give one {{id, response, gold}} object a line")
    return _summarize(benchmark, counts, num_bad)


def _batches(lines: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    batch: list[tuple[int, bytes]] = []
    for number, line in lines:
        if line.strip():
            batch.append((number, line))
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _read_row(line: bytes) -> tuple[Any, GradeItem]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON ({error})") from None
    if not isinstance(row, dict):
        raise DataError(f"expected an object with id, response and gold, got {type(row).__name__}")
    if missing := [key for key in ("id", "response", "gold") if key not in row]:
        raise DataError(f"lacks {', '.join(missing)}; each line needs id, response and gold")
    if not isinstance(row["id"], str | int) or isinstance(row["id"], bool):
        raise DataError(f"id must be text or a whole number, got {type(row['id']).__name__}")
    reason = "stop" if row.get("finish_reason") is None else row["finish_reason"]
    for key, value in (("response", row["response"]), ("gold", row["gold"]), ("finish_reason", reason)):
        if not isinstance(value, str):
            raise DataError(f"{key} must be text, got {type(value).__name__}")
    return row["id"], GradeItem(row["response"], row["gold"], reason)


def _write(row_id: Any, grade: Grade) -> None:
    print(json.dumps({"id": row_id, "status": grade.status, "answer": grade.answer}, ensure_ascii=True))


def _name_line(name: str, number: int, problem: str) -> None:
    print(f"{name}: line {number}: {problem}", file=sys.stderr)


def _summarize(benchmark: str, counts: Counter[str], num_bad: int) -> int:
    num_graded = counts.total()
    parts = [f"{counts[status]} {status}" for status in STATUSES if counts[status]]
    print(
        f"{benchmark}: {num_graded} graded ({', '.join(parts) or 'none'}), {num_bad} bad lines skipped",
        file=sys.stderr,
    )
    if counts["grader_error"]:
        return GraderError.exit_code
    if num_bad:
        return DataError.exit_code
    return 0
