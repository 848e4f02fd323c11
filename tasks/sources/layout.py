"""What the rows of a table look like: which column holds what, and how its text is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vcppo.config.sources import FileSource, HubSource

Reader = Callable[[str], str]
"""From a cell's text to what is meant. Raises ValueError saying what is wrong with the cell."""


def as_it_stands(text: str) -> str:
    """The cell's text itself."""
    return text


@dataclass(frozen=True)
class Layout:
    """Columns by dotted name (parts reach into structs and lists), each with its reader."""

    problem: str
    answer: str
    id: str | None = None
    """None: the id is derived from the problem's text."""
    solution: str | None = None
    read_problem: Reader = as_it_stands
    read_answer: Reader = as_it_stands
    wrong_options: tuple[str, ...] = ()
    """Columns of the wrong options of a multiple-choice problem; `answer` is then the right one's text."""

    def roots(self) -> list[str]:
        """The top-level columns that are needed, sorted."""
        names = (self.problem, self.answer, self.id, self.solution, *self.wrong_options)
        return sorted({name.split(".")[0] for name in names if name is not None})


@dataclass(frozen=True)
class Template:
    """A prompt template around the problem's text."""

    prefix: str
    suffix: str


def without_template(*templates: Template) -> Reader:
    """A reader that takes off the first template whose whole prefix and suffix are there.

    As whole strings: stripping by character sets would eat the problem's own first and last letters.
    """

    def read(text: str) -> str:
        for template in templates:
            inner = text.removeprefix(template.prefix).removesuffix(template.suffix)
            if len(inner) == len(text) - len(template.prefix) - len(template.suffix):
                return inner.strip()
        raise ValueError(
            f"the prompt has none of the known templates; it begins {text[:60]!r} and ends {text[-40:]!r}"
        )

    return read


def declared_layout(source: FileSource | HubSource) -> Layout:
    """The layout of a source that names its columns itself."""
    return Layout(
        problem=source.problem_column,
        answer=source.answer_column,
        id=source.id_column,
        solution=source.solution_column,
    )
