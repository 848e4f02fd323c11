"""`python -m flows up` and `python -m flows down`: the local Prefect server and worker."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from flows import services
from vcppo.errors import VcppoError
from vcppo.workspace import checkout_root


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m flows", description="The local Prefect server and worker."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    up = actions.add_parser("up", help="start server and worker, deploy the flows of prefect.yaml")
    up.add_argument(
        "--port", type=int, default=services.DEFAULT_PORT, help="on 127.0.0.1 (default: %(default)s)"
    )
    actions.add_parser("down", help="end them")
    args = parser.parse_args(arguments)
    try:
        if args.action == "up":
            services.up(checkout_root(), args.port)
        else:
            services.down(checkout_root())
    except VcppoError as error:
        print(f"flows {args.action}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
