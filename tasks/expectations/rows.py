"""Prepared problems of one row group reduced to plain cells: no text outlives its group.

Whole columns are sifted at once; only what might be remarkable is looked at row by row. Imports nothing
heavy: worker processes start with this module.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.expectations.prepared import Problems, Prompts, read_group
from tasks.expectations.signs import (
    ANSWER_HINTS,
    FOREIGN_PARTS,
    NONE,
    answer_inside,
    language,
    option_state,
    template_state,
)
from tasks.expectations.tokens import Prompt, most_tokens
from tasks.sources.contamination import BenchmarkIndex
from tasks.sources.figures import HINTS, figure_marker
from tasks.sources.words import comparison_key
from vcppo.config import DataConfig

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Reference:
    """What every row is held against."""

    data: DataConfig
    index: BenchmarkIndex
    traces: Mapping[str, Sequence[str]]
    frame: int
    """Bytes of the chat template around a prompt."""
    trusted_bound: int
    """A prompt whose most tokens are no more than this is not counted: `max_prompt_tokens`, or 0 to count
    them all."""
    expressible: str
    """Characters that the tokenizer surely expresses; others are handed back."""


@dataclass
class Described:
    """The cells of one row group by column, and what is left to do."""

    columns: dict[str, pa.Array] = field(default_factory=dict)
    prompt_tokens: list[int] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    """Digest of what makes each problem another one."""
    uncounted: dict[int, Prompt] = field(default_factory=dict)
    """Prompts whose tokens must be counted, by their place."""
    rare: dict[int, str] = field(default_factory=dict)
    """Characters of a prompt that are not surely expressible, by its place."""


def describe(path: Path, group: int, split: str, reference: Reference) -> Described:
    """The cells of one row group of a prepared file, but for what the grader and the tokenizer say.

    Raises DataError as `read_group` does.
    """
    import numpy as np
    import pyarrow as pa

    rows = read_group(path, group)
    prompts = Prompts(rows)
    compared = rows.compared()
    bounds = most_tokens(prompts.num_bytes(), reference.frame)
    counted = np.flatnonzero(bounds > reference.trusted_bound)
    columns = {
        "id": rows.id,
        "split": pa.repeat(split, len(rows.id)),
        "source": rows.source,
        "grader": rows.grader,
        "prompt_sha256": pa.array([hashlib.sha256(text.encode()).hexdigest() for text in prompts.joined()]),
        "gold": rows.gold,
        "template": _templates(rows, prompts.last(), reference.data),
        "overlap": _overlaps(compared, split, reference),
        **_signs(rows, reference),
    }
    return Described(
        columns,
        bounds.tolist(),
        [hashlib.sha256(comparison_key(text).encode()).digest()[:16] for text in compared],
        dict(zip(counted.tolist(), rows.prompt.take(pa.array(counted)).to_pylist(), strict=True)),
        _rare_characters(prompts, reference.expressible),
    )


def _templates(rows: Problems, contents: pa.StringArray, data: DataConfig) -> pa.Array:
    import pyarrow.compute as pc

    prefix, suffix = data.prompt_template.split("{problem}")
    sound = pc.equal(pc.binary_join_element_wise(prefix, rows.problem, suffix, ""), contents)
    for part in (prefix.strip(), suffix.strip()):
        if part:
            sound = pc.and_(sound, pc.equal(pc.count_substring(contents, part), 1))
    for part in FOREIGN_PARTS:
        sound = pc.and_(sound, pc.invert(pc.match_substring(rows.problem, part)))

    def state(row: int) -> str:
        content, text = contents[row].as_py(), rows.problem[row].as_py()
        return template_state(content, _shown_in(content, text, prefix, suffix), data.prompt_template)

    return _sifted("once", pc.invert(sound), state)


def _signs(rows: Problems, reference: Reference) -> dict[str, pa.Array]:
    import pyarrow as pa
    import pyarrow.compute as pc

    def text(row: int) -> str:
        return str(rows.problem[row].as_py())

    def answer(row: int) -> str:
        return answer_inside(text(row), reference.traces.get(rows.id[row].as_py(), ()))

    def options(row: int) -> str:
        return option_state(rows.options[row].as_py() or (), rows.grader[row].as_py())

    foreign = pc.invert(pc.string_is_ascii(rows.problem))
    with_trace = pc.is_in(rows.id, pa.array(list(reference.traces), pa.string()))
    choice = pc.or_(
        pc.equal(pc.fill_null(rows.grader, ""), "gpqa"),
        pc.greater(pc.fill_null(pc.list_value_length(rows.options), 0), 0),
    )
    return {
        "language": _sifted("en", foreign, lambda row: language(text(row))),
        "answer_inside": _sifted(NONE, pc.or_(with_trace, _any_of(rows.problem, ANSWER_HINTS)), answer),
        "figure": _sifted(
            NONE,
            # upper and lower case of letters beyond ASCII are Python's to tell
            pc.or_(foreign, _any_of(rows.problem, HINTS, ignore_case=True)),
            lambda row: figure_marker(text(row)) or NONE,
        ),
        "options": _sifted("no choice", choice, options),
    }


def _any_of(texts: pa.StringArray, parts: Sequence[str], ignore_case: bool = False) -> pa.BooleanArray:
    """Which texts hold one of these parts."""
    import pyarrow.compute as pc

    return pc.match_substring_regex(texts, "|".join(map(re.escape, parts)), ignore_case=ignore_case)


def _overlaps(compared: Sequence[str], split: str, reference: Reference) -> pa.Array:
    import pyarrow as pa

    if split != "train":
        return pa.repeat(NONE, len(compared))
    index, coverage = reference.index, reference.data.contamination_coverage
    found = (index.overlap(text, coverage) for text in compared)
    return pa.array([overlap.benchmark_id if overlap else NONE for overlap in found], pa.string())


def _rare_characters(prompts: Prompts, expressible: str) -> dict[int, str]:
    import pyarrow.compute as pc

    known = "".join(rf"\x{{{ord(character):x}}}" for character in expressible)
    texts = prompts.texts()
    rows = pc.indices_nonzero(
        pc.match_substring_regex(texts, f"[^{known}]" if known else "(?s).")
    ).to_pylist()
    certain = set(expressible)
    return {row: "".join(sorted(set(texts[row].as_py()) - certain)) for row in rows}


def _sifted(common: str, remarkable: pa.BooleanArray, state: Callable[[int], str]) -> pa.Array:
    """A column that is `common` but where a row may be remarkable: there it is the row's `state`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells: list[Any] = [common] * len(remarkable)
    for row in pc.indices_nonzero(remarkable).to_pylist():
        cells[row] = state(row)
    return pa.array(cells, pa.string())


def _shown_in(content: str, text: str, prefix: str, suffix: str) -> str:
    """The problem as the message shows it: the text itself, or with its lettered options behind it."""
    inner = content.removeprefix(prefix).removesuffix(suffix)
    return inner if inner.startswith(f"{text}\n\n(A) ") else text
