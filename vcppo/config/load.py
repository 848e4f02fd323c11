"""Reading params.yaml and profiles/NAME.yaml; validation errors become one message per wrong key."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel, ValidationError

from vcppo.config.stages import Config
from vcppo.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "profiles"


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
    """Read and validate one file. Raises ConfigurationError naming file, key path, value got and values allowed."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigurationError(
            f"{path}: there is no such file; `python -m vcppo config use tiny` writes params.yaml from a profile"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from None
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: is not valid YAML: {error}") from None
    if not isinstance(values, Mapping):
        raise ConfigurationError(f"{path}: holds {type(values).__name__}, expected keys and values")
    try:
        return Config.model_validate(dict(values))
    except ValidationError as error:
        raise configuration_error(error, str(path)) from None


def dump_yaml(config: BaseModel) -> str:
    """The resolved configuration as YAML, every default written out."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100)


def configuration_error(
    error: ValidationError, where: str, *, prefix: str = "", upper: bool = False
) -> ConfigurationError:
    """One line per wrong key: its path, what it got, what is allowed."""
    lines = []
    for detail in error.errors():
        path = ".".join(str(part) for part in detail["loc"] if part not in _UNION_TAGS)
        name = prefix + (path.upper() if upper else path)
        lines.append(f"{where}: {name or '(whole file)'}: {_explain(detail)}")
    return ConfigurationError("\n".join(lines))


# pydantic puts the chosen branch of a union into the location; it is no key of the file
_UNION_TAGS = {"running_sum", "file", "hub", "tiny", "pretrained", "gguf", "float", "constrained-float"} | {
    "literal['length_adaptive']"
}


def _explain(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        allowed = _fields_at(detail["loc"])
        near = difflib.get_close_matches(str(detail["loc"][-1]), allowed, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"unknown key, allowed here are {', '.join(allowed)}{hint}"
    if detail["type"] == "missing":
        return "required key is missing"
    message = detail["msg"].removeprefix("Value error, ")
    got = detail["input"]
    if isinstance(got, Mapping | list | tuple | BaseModel):
        return message
    return f"got {got!r}: {message[0].lower()}{message[1:]}"


def _fields_at(location: tuple[int | str, ...]) -> list[str]:
    """Names of the fields that may stand beside the rejected key."""
    model: Any = Config
    for part in location[:-1]:
        if isinstance(part, int):
            continue
        model = _descend(model, part)
        if model is None:
            return []
    return sorted(model.model_fields)


def _descend(model: Any, part: str) -> Any:
    """The section below `part`: a field of the model, or the branch of a union with that tag."""
    candidates = _sections(model.model_fields[part].annotation) if part in model.model_fields else []
    if len(candidates) == 1:
        return candidates[0]
    if candidates:  # a tagged union: the next part of the location is the tag
        return type("Union", (), {"model_fields": {}, "branches": candidates})
    for branch in getattr(model, "branches", ()):
        if branch.model_fields["kind"].default == part:
            return branch
    return None


def _sections(annotation: Any) -> list[type[BaseModel]]:
    from typing import get_args

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [section for argument in get_args(annotation) for section in _sections(argument)]
