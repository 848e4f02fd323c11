"""`compare A B`: is B better than A? Paired over the same questions, with an interval, and plainly when the
benchmark cannot tell.

A and B are sample files of two evaluations, or workspaces that hold `data/evaluation/after.parquet`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from vcppo.comparison import SAMPLES, SETTINGS, compare, read_samples, sample_file


def add_parser(subparsers: Any) -> None:
    """Add `compare A B`."""
    parser = subparsers.add_parser(
        "compare",
        help="paired difference of two evaluations, with its interval",
        description="Paired difference B - A of two evaluations on the same questions, one row a benchmark: "
        "95 % interval (bootstrap over questions), p-value (sign flips), and whether the benchmark is too "
        "small to tell.",
        epilog="exit codes: 0 compared, 3 not the same questions, samples or settings, or no sound "
        "evaluation there, 6 the output cannot be written",
    )
    for name in ("A", "B"):
        parser.add_argument(
            name.lower(),
            metavar=name,
            help=f"a parquet file of samples, or a folder or workspace with {SAMPLES}",
        )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        choices=SETTINGS,
        metavar="SETTING",
        help=f"compare although this differs; repeatable: {', '.join(SETTINGS)}",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the resampling (default: 0)")


def run(args: argparse.Namespace) -> None:
    """Compare `args.a` and `args.b`. Raises DataError: no evaluation, other questions, other settings."""
    paths = [sample_file(Path(args.a)), sample_file(Path(args.b))]
    results = compare(read_samples(paths[0]), read_samples(paths[1]), args.allow, args.seed)
    if args.json:
        document = {"a": str(paths[0]), "b": str(paths[1]), "benchmarks": results}
        print(json.dumps(document, indent=2, sort_keys=True))
        return
    print(f"A  {paths[0]}\nB  {paths[1]}")
    for benchmark, result in results.items():
        print(f"\n{benchmark}: {result['num_questions']} questions x {result['samples_per_problem']} samples")
        print(f"  A {result['average_a']:.4f}   B {result['average_b']:.4f}")
        print(
            f"  B - A {result['difference']:+.4f}, 95 % interval [{result['low']:+.4f}, "
            f"{result['high']:+.4f}], p = {result['p_value']:.4g}"
        )
        print(f"  {result['verdict']}")
        for note in result["notes"]:
            print(f"  note: {note}")
