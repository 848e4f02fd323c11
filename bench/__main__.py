"""`python -m bench [NAME ...]`: run all benchmarks, or those named, one process each."""

from __future__ import annotations

import argparse
import os
import pkgutil
import platform
import subprocess
import sys
from importlib.metadata import version

import bench


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0 if every benchmark ended well, else 1."""
    names = [
        module.name for module in pkgutil.iter_modules(bench.__path__) if not module.name.startswith("_")
    ]
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure speed beside references.")
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help=f"one or more of: {', '.join(names)}; all by default"
    )
    wanted = parser.parse_args(arguments).names or names
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        parser.error(f"got {', '.join(unknown)}; allowed are {', '.join(names)}")
    print(
        f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}, "
        f"torch {version('torch')}, verl {version('verl')}"
    )
    failed = []
    for name in wanted:
        print(f"\n=== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
