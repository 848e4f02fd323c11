"""Problems that cannot be solved without a figure are told from those that only speak of figures."""

from __future__ import annotations

import pytest

from tasks.sources.figures import figure_marker


@pytest.mark.parametrize(
    "text",
    [
        "Find the area. [asy] draw((0,0)--(1,1)); [/asy]",
        "In the diagram, find x.",
        "Find the shaded area as shown in the figure below.",
        "What is the sum of angles in the picture to the right?",
        "See ![](https://cdn.example/x.png)",
        "The graph shown below has a maximum.",
    ],
)
def test_problems_that_need_a_figure_are_recognised(text: str) -> None:
    assert figure_marker(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Figure out the sum.",
        "How many 3-digit figures are there?",
        "The graph of $y=x^2$ has a minimum.",
        "Imagine n.",
    ],
)
def test_words_that_only_sound_like_a_figure_are_none(text: str) -> None:
    assert figure_marker(text) is None
