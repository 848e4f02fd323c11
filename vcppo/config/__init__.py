"""The one typed configuration: frozen models that reject unknown keys.

Modules:
- `base`     the frozen base model, the number types and small sections that several stages share
- `sources`  where problems come from (synthetic generator, local file, Hugging Face dataset)
- `model`    which policy is trained (tiny from scratch, a checkpoint folder, a GGUF file of a package)
- `stages`   one section per pipeline stage
- `ablation` the section of a study: training runs side by side
- `train`    the section of stage train: algorithm, actor, critic, guards
- `runtime`  where it runs (devices, nodes, addresses): environment variables, no part of a result's identity
- `load`     reading params.yaml and profiles/NAME.yaml, and writing a configuration out
- `messages` validation errors as one line per wrong key

What identifies a result is `Config`; where it runs is `Runtime`. To add a field: put it into the section of
the stage that reads it, give it a docstring with its unit and source, and name it in that stage's `params` in
dvc.yaml when a new section appears.
"""

from __future__ import annotations

from vcppo.config.ablation import AblationConfig, AblationRow, evaluated_steps, row_config, study_of
from vcppo.config.load import (
    dump_yaml,
    load_config,
    load_params,
    load_profile,
    profile_names,
    profile_path,
)
from vcppo.config.model import GgufModel, ModelConfig, PretrainedModel, TinyModel
from vcppo.config.runtime import Runtime, load_runtime
from vcppo.config.sources import FileSource, HubSource, IndependentStepsSource, Source, SyntheticSource
from vcppo.config.stages import (
    Config,
    DataConfig,
    EvaluateConfig,
    GaeConfig,
    PretrainCriticConfig,
    RewardModelConfig,
    RolloutsConfig,
    SftConfig,
    TrainConfig,
)

__all__ = [
    "AblationConfig",
    "AblationRow",
    "Config",
    "DataConfig",
    "EvaluateConfig",
    "FileSource",
    "GaeConfig",
    "GgufModel",
    "HubSource",
    "IndependentStepsSource",
    "ModelConfig",
    "PretrainCriticConfig",
    "PretrainedModel",
    "RewardModelConfig",
    "RolloutsConfig",
    "Runtime",
    "SftConfig",
    "Source",
    "SyntheticSource",
    "TinyModel",
    "TrainConfig",
    "dump_yaml",
    "evaluated_steps",
    "load_config",
    "load_params",
    "load_profile",
    "load_runtime",
    "profile_names",
    "profile_path",
    "row_config",
    "study_of",
]
