"""Plot files of the stages: CSV, as `dvc plots` reads it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vcppo.files import write_text_atomic


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write the named columns of each row, in the order given; other keys are left out, missing ones
    stay empty.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text_atomic(path, text.getvalue())
