"""Problems that cannot be solved without seeing a figure."""

from __future__ import annotations

import re

_MARKERS = re.compile(
    r"\[/?asy\]|\\begin\{asy\}|\\includegraphics|\\begin\{tikzpicture\}"
    r"|!\[[^\]]*\]\(|<image|<img\b|https?://\S+\.(?:png|jpe?g|gif|svg)"
    r"|\b(?:figure|diagram|picture|image|graph)s?\s+(?:shown\s+)?"
    r"(?:below|above|(?:at|on|to) (?:the )?right)\b"
    r"|\b(?:shown|pictured|depicted|drawn|illustrated|seen|given) (?:in|on) the "
    r"(?:(?:following|adjacent|accompanying|attached|next) )?(?:figure|diagram|picture|image|drawing)\b"
    r"|\b(?:following|adjacent|accompanying|attached) (?:figure|diagram|picture|image|drawing)\b"
    r"|\bin the (?:figure|diagram|picture)\b|\bas (?:shown|pictured)\b",
    re.IGNORECASE,
)
# every marker holds one of these: plain substrings are found ten times faster
HINTS = (
    "asy", "graphic", "tikz", "![", "<im", "http", "figure", "diagram", "picture", "image", "graph",
    "drawing", "shown",
)  # fmt: skip


def figure_marker(text: str) -> str | None:
    """The first sign that a problem refers to a figure, or None."""
    lowered = text.lower()
    if not any(hint in lowered for hint in HINTS):
        return None
    found = _MARKERS.search(text)
    return found.group(0) if found else None
