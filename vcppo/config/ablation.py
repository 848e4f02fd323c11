"""The section of a study: which training runs are set side by side, with how many seeds each.

Every row starts from the same SFT policy; it differs from the profile's `train` section in what `changes`
says, and in how long its critic was pretrained. A seed of a row is a whole training run of its own: sampling
noise and the order of prompts derive from it. Seed i is the same number in every row, so rows are paired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError, model_validator

from vcppo.config.base import PositiveFloat, PositiveInt, Section
from vcppo.config.messages import configuration_error
from vcppo.errors import ConfigurationError

if TYPE_CHECKING:
    from vcppo.config.stages import Config

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.\-]*$")]


class AblationRow(Section):
    """One row of the table."""

    name: Name
    label: str
    """As it stands in the report."""
    pretraining_share: float = Field(default=1.0, ge=0.0)
    """Length of the value pretraining, one of `ablation.pretraining_shares`. 0: none, the critic is what
    pretraining would have started from (`pretrain_critic.start_from`)."""
    changes: dict[str, Any] = Field(default_factory=dict)
    """Dotted keys below `train`, and their values."""
    num_seeds: PositiveInt = 5
    paper: float | None = None
    """The paper's figure for this row (AIME 2024 pass@1, in per cent), shown beside ours."""


class AblationComparison(Section):
    """A paired difference between two rows, seed by seed."""

    better: Name
    worse: Name
    """The names of the rows as expected; the sign of the difference tells."""


class AblationTable(Section):
    """One table of the report."""

    title: str
    rows: tuple[Name, ...] = Field(min_length=1)
    """In order; a row may stand in several tables."""


class AblationConfig(Section):
    pretraining_shares: tuple[PositiveFloat, ...] = (1.0,)
    """Lengths of value pretraining, as shares of `pretrain_critic.max_epochs`: one critic each. Apart from
    the rows, so that a new row does not train the critics again."""
    rows: tuple[AblationRow, ...] = Field(min_length=1)
    tables: tuple[AblationTable, ...] = Field(min_length=1)
    comparisons: tuple[AblationComparison, ...] = ()
    evaluate_steps: tuple[PositiveInt, ...] = ()
    """Steps whose checkpoints are evaluated on the held-out problems; the last step always is. Multiples of
    train.save_every_steps."""
    notes: tuple[str, ...] = ()
    """What a reader of this study's report must know: how the task was made, what it does not show."""

    @model_validator(mode="after")
    def _names(self) -> AblationConfig:
        names = [row.name for row in self.rows]
        if len(set(names)) != len(names):
            raise ValueError(f"row names must differ, got {', '.join(names)}")
        shares = {row.pretraining_share for row in self.rows} - {0.0}
        if missing := sorted(shares - set(self.pretraining_shares)):
            raise ValueError(
                f"rows start from pretraining shares {', '.join(map(str, missing))}, which are not in "
                f"ablation.pretraining_shares ({', '.join(map(str, self.pretraining_shares))})"
            )
        asked = [name for table in self.tables for name in table.rows]
        asked += [name for pair in self.comparisons for name in (pair.better, pair.worse)]
        unknown = sorted(set(asked) - set(names))
        if unknown:
            raise ValueError(
                f"tables and comparisons name unknown rows {', '.join(unknown)}; rows are {', '.join(names)}"
            )
        return self


OWN = {
    "critic_start": "choose with pretraining_share (0: what pretrain_critic.start_from says)",
    "keep_checkpoints": "as many are kept as are evaluated",
}
"""Keys of `train` that a row does not change, and what to do instead."""


def study_of(config: Config) -> AblationConfig:
    """The study of a profile. Raises ConfigurationError if it has none."""
    if config.ablation is None:
        raise ConfigurationError(
            f"params.yaml: profile {config.profile} has no section ablation; take one that has, such as "
            "profiles/ablation.yaml"
        )
    return config.ablation


def row_config(config: Config, row: AblationRow, seed_index: int) -> Config:
    """The configuration of one run of a row: `train` changed, a seed of its own, the critic's start as the
    length of its pretraining says, checkpoints kept until they are evaluated.

    Raises ValueError naming the row if a change is no key of `train`, or its value is not allowed.
    """
    values = config.model_dump(mode="python", exclude={"ablation"})
    values["seed"] = config.seed + seed_index
    for key, value in row.changes.items():
        if key in OWN:
            raise ValueError(f"ablation row {row.name}: changes: train.{key} is set by the study; {OWN[key]}")
        *path, last = key.split(".")
        section = values["train"]
        for part in path:
            section = section.get(part)
            if not isinstance(section, dict):
                raise ValueError(f"ablation row {row.name}: changes: train.{key} is no key")
        if last not in section:
            raise ValueError(
                f"ablation row {row.name}: changes: train.{key} is no key, allowed are {', '.join(section)}"
            )
        section[last] = value
    train = values["train"]
    start_from = values["pretrain_critic"]["start_from"]
    train["critic_start"] = "value_pretrained" if row.pretraining_share > 0 else start_from
    train["keep_checkpoints"] = -(-train["num_steps"] // train["save_every_steps"])
    try:
        changed = type(config).model_validate(values)
    except ValidationError as error:
        raise ValueError(str(configuration_error(error, type(config), f"ablation row {row.name}"))) from None
    for step in evaluated_steps(config, changed.train.num_steps)[:-1]:
        if step % changed.train.save_every_steps:
            raise ValueError(
                f"ablation.evaluate_steps: {step} has no checkpoint, train.save_every_steps is "
                f"{changed.train.save_every_steps}"
            )
    return changed


def evaluated_steps(config: Config, num_steps: int) -> list[int]:
    """Steps of a run whose policies are evaluated, the last one included."""
    return [*sorted(s for s in set(study_of(config).evaluate_steps) if s < num_steps), num_steps]
