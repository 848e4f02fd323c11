"""The pipelines as their files declare them: what a stage depends on and what it makes. One source for DVC,
work directories and records alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from vcppo.config import Config
from vcppo.errors import ConfigurationError

MAIN = "dvc.yaml"
ABLATION = "ablation/dvc.yaml"
"""The study's own pipeline, on top of the main one. Its stages work in the workspace's root (`wdir: ..`).
Only workspaces of profiles with a study have it."""
ABLATION_SOURCE = "ablation/pipeline.yaml"
"""What is laid there; under this name DVC does not see it."""
LOCKS = ("dvc.lock", "ablation/dvc.lock")


@dataclass(frozen=True)
class StageSpec:
    """One stage of a dvc.yaml. Paths are relative to the workspace."""

    name: str
    deps: tuple[str, ...]
    params: tuple[str, ...]
    """Dotted keys of params.yaml."""
    outs: tuple[str, ...]
    """Outputs, metrics and plots together, in the order declared."""
    file: str = MAIN
    """The pipeline file that declares it."""

    def parameter_values(self, config: Config) -> dict[str, Any]:
        """Resolved values of the parameters that the stage depends on."""
        values = config.model_dump(mode="json")
        return {key: _select(values, key) for key in self.params}


def load_pipeline(workspace: Path = Path(), file: str = MAIN) -> dict[str, StageSpec]:
    """Every stage of one pipeline file, in its order. Raises ConfigurationError if there is no such file."""
    path = workspace / file
    if not path.is_file():
        raise ConfigurationError(
            f"{path.resolve()}: there is no such file; run from the root of the checkout"
        )
    try:
        stages = yaml.safe_load(path.read_text(encoding="utf-8"))["stages"]
        return _stages(stages, file)
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"{path}: is no DVC pipeline: {error}; `dvc stage list` says where"
        ) from None


def load_all(workspace: Path = Path()) -> dict[str, StageSpec]:
    """Every stage of every pipeline file that the workspace has, the main one's first."""
    stages = load_pipeline(workspace)
    if (workspace / ABLATION).is_file():
        stages |= load_pipeline(workspace, ABLATION)
    return stages


def _stages(stages: Mapping[str, Any], file: str) -> dict[str, StageSpec]:
    return {
        name: StageSpec(
            name=name,
            deps=_names(stage.get("deps", [])),
            params=_names(stage.get("params", [])),
            outs=_names(stage.get("outs", []))
            + _names(stage.get("metrics", []))
            + _names(stage.get("plots", [])),
            file=file,
        )
        for name, stage in stages.items()
    }


def load_stage(name: str, workspace: Path = Path()) -> StageSpec:
    """One stage of any pipeline. Raises ConfigurationError for an unknown name, listing those there are."""
    stages = load_all(workspace)
    if name not in stages:
        raise ConfigurationError(f"stage: got {name!r}, allowed are {', '.join(stages)}")
    return stages[name]


def made_by_pipelines(workspace: Path = Path()) -> list[str]:
    """Paths that stages and DVC write: no code of the checkout."""
    outs = [out for stage in load_all(workspace).values() for out in stage.outs]
    return [ABLATION, *LOCKS, *outs]


def upstream(stages: Mapping[str, StageSpec], name: str) -> list[str]:
    """The stage and every one that it needs, in the order in which they run."""
    needed = {name}
    for stage in reversed(list(stages.values())):
        readers = [dep for other in needed for dep in stages[other].deps]
        if any(dep == out or dep.startswith(f"{out}/") for dep in readers for out in stage.outs):
            needed.add(stage.name)
    return [stage for stage in stages if stage in needed]


def _names(entries: list[str | dict[str, Any]]) -> tuple[str, ...]:
    return tuple(entry if isinstance(entry, str) else next(iter(entry)) for entry in entries)


def _select(values: Any, key: str) -> Any:
    for part in key.split("."):
        if not isinstance(values, Mapping) or part not in values:
            raise ConfigurationError(f"dvc.yaml: parameter {key!r} is no key of the configuration")
        values = values[part]
    return values
