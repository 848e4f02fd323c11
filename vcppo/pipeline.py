"""The pipeline as dvc.yaml declares it: what a stage depends on and what it makes. One source for DVC, work
directories and records alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from vcppo.config import Config
from vcppo.errors import ConfigurationError


@dataclass(frozen=True)
class StageSpec:
    """One stage of dvc.yaml. Paths are relative to the workspace."""

    name: str
    deps: tuple[str, ...]
    params: tuple[str, ...]
    """Dotted keys of params.yaml."""
    outs: tuple[str, ...]
    """Outputs, metrics and plots together, in the order declared."""

    def parameter_values(self, config: Config) -> dict[str, Any]:
        """Resolved values of the parameters that the stage depends on."""
        values = config.model_dump(mode="json")
        return {key: _select(values, key) for key in self.params}


def load_pipeline(workspace: Path = Path()) -> dict[str, StageSpec]:
    """Every stage of `dvc.yaml`, in its order. Raises ConfigurationError if there is no such file."""
    path = workspace / "dvc.yaml"
    if not path.is_file():
        raise ConfigurationError(
            f"{path.resolve()}: there is no such file; run from the root of the checkout"
        )
    try:
        stages = yaml.safe_load(path.read_text(encoding="utf-8"))["stages"]
        return _stages(stages)
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"{path}: is no DVC pipeline: {error}; `dvc stage list` says where"
        ) from None


def _stages(stages: Mapping[str, Any]) -> dict[str, StageSpec]:
    return {
        name: StageSpec(
            name=name,
            deps=_names(stage.get("deps", [])),
            params=_names(stage.get("params", [])),
            outs=_names(stage.get("outs", []))
            + _names(stage.get("metrics", []))
            + _names(stage.get("plots", [])),
        )
        for name, stage in stages.items()
    }


def load_stage(name: str, workspace: Path = Path()) -> StageSpec:
    """One stage of dvc.yaml. Raises ConfigurationError for an unknown name, listing those there are."""
    stages = load_pipeline(workspace)
    if name not in stages:
        raise ConfigurationError(f"stage: got {name!r}, allowed are {', '.join(stages)}")
    return stages[name]


def _names(entries: list[str | dict[str, Any]]) -> tuple[str, ...]:
    return tuple(entry if isinstance(entry, str) else next(iter(entry)) for entry in entries)


def _select(values: Any, key: str) -> Any:
    for part in key.split("."):
        if not isinstance(values, Mapping) or part not in values:
            raise ConfigurationError(f"dvc.yaml: parameter {key!r} is no key of the configuration")
        values = values[part]
    return values
