"""What is asked of an engine and what it gives back: requests, how they are drawn, responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from training.generation.prompts import Message, Problem
from vcppo.config.base import SamplingConfig


@dataclass(frozen=True)
class Request:
    """One sample of one problem, as this sample shows it."""

    problem: Problem
    sample: int
    """0..k-1 within the problem."""
    messages: tuple[Message, ...]
    """The chat prompt: the problem's own, but multiple choice orders its options anew in each sample."""
    gold: str
    permutation: tuple[int, ...] | None = None
    """Which of the problem's options stands at each place; None without options."""

    @property
    def key(self) -> str:
        """The sample's name: its noise depends on it and on nothing else."""
        return f"{self.problem.id}/{self.sample}"


def plain_requests(problem: Problem, samples_per_problem: int) -> list[Request]:
    """The problem as it stands, so many times."""
    return [Request(problem, i, problem.messages, problem.gold) for i in range(samples_per_problem)]


@dataclass(frozen=True)
class Draw:
    """How responses are drawn."""

    sampling: SamplingConfig
    max_response_tokens: int
    key_prefix: str
    """First part of each sample's noise key: apart for rollouts and evaluations."""

    def key(self, request: Request) -> str:
        """Name of a sample's noise."""
        return f"{self.key_prefix}/{request.key}"


@dataclass(frozen=True)
class Response:
    """One sampled response, not yet graded."""

    request: Request
    text: str
    finish_reason: str
    """`stop` (end of sequence drawn), `length` (cut at the limit), `abort` (the engine cut it)."""
    num_tokens: int
    """Response tokens as the engine counts them, the end-of-sequence token included."""
    engine_version: str
    prompt_ids: tuple[int, ...] = ()
    response_ids: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    """Under the distribution that was drawn from. A remote engine gives no token ids and none of these."""


class Keep(Protocol):
    """Where an engine puts what it has finished, and finds what an earlier attempt did."""

    def get(self, request: Request) -> Response | None:
        """The response to this request, if it was finished."""

    def add(self, responses: Sequence[Response]) -> None:
        """Keep these too."""
