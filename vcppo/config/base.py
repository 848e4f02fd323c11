"""The frozen base model, and the number types and small sections that several stages share."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError


def _no_truth_value(value: Any) -> Any:
    # pydantic would read `lam_actor: true` as 1.0
    if isinstance(value, bool):
        raise PydanticCustomError("truth_value", "true and false are no numbers")
    return value


Number = BeforeValidator(_no_truth_value)
UnitInterval = Annotated[float, Field(ge=0.0, le=1.0), Number]
BetweenZeroAndOne = Annotated[float, Field(gt=0.0, lt=1.0), Number]
PositiveFloat = Annotated[float, Field(gt=0.0), Number]
PositiveInt = Annotated[int, Field(ge=1), Number]
NonNegativeInt = Annotated[int, Field(ge=0), Number]


class Section(BaseModel):
    """A part of the configuration: immutable, unknown keys rejected, NaN and infinity rejected."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True, validate_default=True
    )


class OptimizerConfig(Section):
    """AdamW with a linear warm-up to a constant rate."""

    learning_rate: PositiveFloat
    warmup_steps: NonNegativeInt = 0
    weight_decay: float = Field(default=0.0, ge=0.0)
    max_grad_norm: PositiveFloat = 1.0


class SamplingConfig(Section):
    """How responses are drawn. top_p 1 and top_k 0 leave the distribution as it is."""

    temperature: float = Field(default=1.0, ge=0.0)
    """0: greedy."""
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    top_k: NonNegativeInt = 0
