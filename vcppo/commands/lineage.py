"""`lineage`: what made a file (up to the sources), or what was made from it (down), from the run records."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from vcppo.errors import DataError


def add_parser(subparsers: Any) -> None:
    """Add `lineage PATH [--json] [--down]`."""
    parser = subparsers.add_parser(
        "lineage",
        help="what made a file or directory, or what was made from it",
        description="Walk the run records from an artifact up to its sources, or down to what was made from "
        f"it. Ends with exit code {DataError.exit_code} if the file or an input does not match its record.",
    )
    parser.add_argument("path", metavar="PATH", type=Path, help="for instance models/policy")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--down", action="store_true", help="what was made from PATH, instead of what made it"
    )


def run(args: argparse.Namespace) -> int:
    """Print the lineage. Raises DataError if no record knows the path."""
    from vcppo.lineage import render_text, trace

    lineage = trace(args.path, down=args.down)
    print(lineage.model_dump_json(indent=2) if args.json else render_text(lineage))
    if args.json:
        for sentence in lineage.mismatches:
            print(f"vcppo lineage: {sentence}", file=sys.stderr)
    return DataError.exit_code if lineage.mismatches else 0
