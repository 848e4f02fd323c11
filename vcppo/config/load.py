"""Reading params.yaml and profiles/NAME.yaml, and writing a configuration out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from vcppo.config.messages import configuration_error
from vcppo.config.stages import Config
from vcppo.errors import ConfigurationError

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "profiles"


class UniqueKeyLoader(yaml.SafeLoader):
    """YAML without keys that stand twice in one mapping: of those the last would silently win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[Any, int] = {}
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":  # <<: keys beside it win, as they should
                continue
            key, line = self.construct_object(key_node, deep=True), key_node.start_mark.line + 1
            if isinstance(key, str) and key in lines:
                raise yaml.constructor.ConstructorError(
                    problem=f"key {key!r} stands twice, in lines {lines[key]} and {line}"
                )
            lines[str(key)] = line
        return super().construct_mapping(node, deep)


def profile_names() -> list[str]:
    """Names of the shipped profiles, sorted."""
    return sorted(path.stem for path in PROFILES.glob("*.yaml"))


def profile_path(name: str) -> Path:
    """File of a shipped profile. Raises ConfigurationError for an unknown name, listing those there are."""
    if name not in profile_names():
        raise ConfigurationError(
            f"profile: got {name!r}, allowed are {', '.join(profile_names())} (files in profiles/)"
        )
    return PROFILES / f"{name}.yaml"


def load_profile(name: str) -> Config:
    """A shipped profile, validated."""
    return load_config(profile_path(name))


def load_params(path: Path | None = None) -> Config:
    """The configuration of this workspace: `params.yaml` in the current directory."""
    return load_config(path or Path("params.yaml"))


def load_config(path: Path) -> Config:
    """Read and validate one file. Raises ConfigurationError naming file, key, value and what is allowed."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigurationError(
            f"{path}: there is no such file; "
            "`python -m vcppo config use tiny` writes params.yaml from a profile"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from None
    try:
        values = yaml.load(text, UniqueKeyLoader)
    # values that look like a date or have a tag fail in Python's own words, deep nesting in its stack
    except (yaml.YAMLError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigurationError(
            f"{path}: is not valid YAML: {error}; mend it there, or write it anew with "
            "`python -m vcppo config use NAME`"
        ) from None
    if not isinstance(values, Mapping):
        raise ConfigurationError(f"{path}: holds {type(values).__name__}, expected keys and values")
    try:
        return Config.model_validate(dict(values))
    except ValidationError as error:
        raise configuration_error(error, Config, str(path)) from None


def dump_yaml(config: BaseModel) -> str:
    """The resolved configuration as YAML, every default written out."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100)
