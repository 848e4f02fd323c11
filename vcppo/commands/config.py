"""`config`: show a resolved configuration, choose a profile for this checkout, list the profiles."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vcppo.config import Config

PARAMS = Path("params.yaml")


def add_parser(subparsers: Any) -> None:
    """Add `config show`, `config use` and `config list`."""
    parser = subparsers.add_parser("config", help="show, choose and list configurations")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="print a configuration as YAML, every default written out")
    show.add_argument(
        "--profile", metavar="NAME", help="a shipped profile; default: params.yaml of this checkout"
    )
    use = actions.add_parser("use", help="write params.yaml from a profile")
    use.add_argument("name", metavar="NAME", help="a shipped profile (see `config list`)")
    use.add_argument("--force", action="store_true", help="overwrite values that were edited by hand")
    actions.add_parser("list", help="names of the shipped profiles, the current one marked")


def run(args: argparse.Namespace) -> None:
    """Run the chosen action. Raises ConfigurationError for an unknown profile or edited values."""
    actions = {"show": lambda: _show(args.profile), "use": lambda: _use(args.name, args.force), "list": _list}
    actions[args.action]()


def _show(profile: str | None) -> None:
    from vcppo.config import dump_yaml, load_params, load_profile

    print(dump_yaml(load_profile(profile) if profile else load_params()), end="")


def _use(name: str, force: bool) -> None:
    from vcppo.config import load_config, profile_path
    from vcppo.errors import ConfigurationError
    from vcppo.files import storage_errors, write_text_atomic

    source = profile_path(name)
    load_config(source)
    if not Path("dvc.yaml").is_file():
        raise ConfigurationError(
            f"{Path.cwd()}: holds no dvc.yaml, beside which params.yaml belongs; run from the root of the "
            "checkout"
        )
    if PARAMS.exists() and not force and _profile_of(PARAMS) is None:
        raise ConfigurationError(
            f"{PARAMS}: its values are those of no shipped profile, so somebody edited them; keep a copy, or "
            f"overwrite them with `python -m vcppo config use {name} --force`"
        )
    with storage_errors(PARAMS):
        write_text_atomic(PARAMS, source.read_text(encoding="utf-8"))
    print(f"{PARAMS} now holds profile {name}; `dvc repro` runs what that changes")


def _list() -> None:
    from vcppo.config import profile_names

    current = _profile_of(PARAMS)
    for name in profile_names():
        print(f"{'*' if name == current else ' '} {name}")


def _profile_of(params: Path) -> str | None:
    """Name of the shipped profile whose values a file holds; None for other or unreadable values."""
    from vcppo.config import load_config, load_profile, profile_names
    from vcppo.errors import ConfigurationError

    try:
        values: Config = load_config(params)
    except ConfigurationError:
        return None
    return next((name for name in profile_names() if load_profile(name) == values), None)
