"""The product's exceptions, one per class of failure, each with the exit code a stage ends with.

A message names what was wrong, what was got, what is allowed and what to do; the command line prints it
without a traceback. Each class says whether trying again can help (DESIGN: failures are classified).

To add one: subclass `VcppoError` (and the standard error it is a kind of), give it an unused `exit_code`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class VcppoError(Exception):
    """Base of everything that the product raises on purpose. Picklable: its only argument is the message."""

    exit_code = 1
    retryable = False


class ConfigurationError(VcppoError, ValueError):
    """A key or value of the configuration is wrong. Never retried."""

    exit_code = 2


class DataError(VcppoError, ValueError):
    """A source, dataset or record is missing, malformed or fails validation. Never retried."""

    exit_code = 3


class CheckpointError(VcppoError, RuntimeError):
    """A checkpoint is torn, lacks its value head, or belongs to another configuration. Never retried."""

    exit_code = 4


class GraderError(VcppoError, RuntimeError):
    """The grader itself failed (canary pair wrong, worker gone): no score may be given."""

    exit_code = 5


class StorageError(VcppoError, OSError):
    """No permission, no space, or the file system failed. Not retried until somebody makes room."""

    exit_code = 6


class DivergenceError(VcppoError, RuntimeError):
    """Training went wrong in its numbers (non-finite, collapse, gate refused): stop, keep the last good."""

    exit_code = 7


class NonFiniteError(DivergenceError):
    """A loss, gradient norm or value is nan or infinite."""

    exit_code = 20


class ExplainedVarianceError(DivergenceError):
    """The critic explains less than nothing, step after step."""

    exit_code = 21


class ValueBiasError(DivergenceError):
    """The critic is far too low or too high, step after step."""

    exit_code = 22


class LengthCollapseError(DivergenceError):
    """Responses became much shorter and no better."""

    exit_code = 23


class KlRunawayError(DivergenceError):
    """The policy moves too far within a step, or is too far from the SFT policy."""

    exit_code = 24


class EntropyRunawayError(DivergenceError):
    """The policy becomes random."""

    exit_code = 25


class DeadGraderError(DivergenceError):
    """Every response gets the same score: there is nothing to learn from."""

    exit_code = 26


class InfrastructureError(VcppoError, RuntimeError):
    """A process, node or service died under us. Retried with back-off."""

    exit_code = 8
    retryable = True


class OutOfMemoryError(VcppoError, MemoryError):
    """A process was ended for memory. Not retried: the same sizes need the same memory again."""

    exit_code = 9


class LeaseHeldError(InfrastructureError):
    """Another live process works in the same run directory (flock held)."""

    exit_code = 75  # EX_TEMPFAIL


def known_error(failure: Mapping[str, Any], who: str = "") -> VcppoError | None:
    """The error that a failure record (`class`, `message`) tells of, if it is one of ours. who: put before
    the message."""
    kind = globals().get(failure["class"])
    if isinstance(kind, type) and issubclass(kind, VcppoError):
        return kind(f"{who}{failure['message']}")
    return None
