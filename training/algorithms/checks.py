"""What the algorithms ask of their input, and the messages for those who give something else.

A wrong coefficient is a wrong configuration (`ConfigurationError`), a wrong tensor wrong data (`DataError`):
both are `ValueError`s.
"""

from __future__ import annotations

import math
from numbers import Real

import torch
from torch import Tensor

from vcppo.errors import ConfigurationError, DataError


def unit_interval(name: str, value: object) -> float:
    """`value` as a float; ConfigurationError unless it is a number in [0, 1]."""
    if isinstance(value, Tensor) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= float(value) <= 1.0:
        raise ConfigurationError(f"{name} is {value!r}; allowed is a number in [0, 1]")
    return float(value)


def positive(name: str, value: object) -> float:
    """`value` as a float; ConfigurationError unless it is a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < math.inf:
        raise ConfigurationError(f"{name} is {value!r}; allowed is a finite number > 0")
    return float(value)


def unit_interval_per_row(name: str, values: Tensor, batch_size: int) -> Tensor:
    """`values` [batch] as float64; ConfigurationError unless its shape fits and all lie in [0, 1]."""
    if values.shape != (batch_size,):
        raise ConfigurationError(
            f"{name} has shape {list(values.shape)}; allowed is a number or one a response, [{batch_size}]"
        )
    if values.dtype == torch.bool or values.is_complex():
        raise ConfigurationError(f"{name} has dtype {values.dtype}; allowed are numbers in [0, 1]")
    values = values.detach().to(torch.float64)
    allowed = (values >= 0.0) & (values <= 1.0)  # False for nan
    if not bool(allowed.all()):
        row = int((~allowed).nonzero()[0])
        raise ConfigurationError(f"{name}[{row}] is {values[row].item()!r}; allowed are numbers in [0, 1]")
    return values


def same_shape(**tensors: Tensor) -> None:
    """DataError unless all are tensors [batch, response], of one shape and on one device."""
    given: dict[str, object] = dict(tensors)
    for name, value in given.items():
        if not isinstance(value, Tensor):
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            raise DataError(f"{name} is a {kind}; allowed is a torch.Tensor [batch, response]")
        if value.is_complex():
            raise DataError(f"{name} has dtype {value.dtype}; allowed are real numbers")
    shapes = {name: list(tensor.shape) for name, tensor in tensors.items()}
    first = next(iter(shapes.values()))
    if len(first) != 2 or any(shape != first for shape in shapes.values()):
        got = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise DataError(f"shapes differ: {got}; all must be one [batch, response]")
    devices = {name: str(tensor.device) for name, tensor in tensors.items()}
    if len(set(devices.values())) > 1:
        got = ", ".join(f"{name} on {device}" for name, device in devices.items())
        raise DataError(f"devices differ: {got}; move them to one device first")


def trainable(response_mask: Tensor) -> Tensor:
    """The mask [batch, response] as bool; DataError when it selects nothing."""
    selected = response_mask != 0
    if not bool(selected.any()):
        raise all_masked(response_mask)
    return selected


def all_masked(response_mask: Tensor) -> DataError:
    """The error for a batch without a trainable token: every mean over it would be 0/0."""
    return DataError(
        f"response_mask {list(response_mask.shape)} selects no token of the batch: at least one must be 1; "
        "look for empty or wholly masked responses"
    )
