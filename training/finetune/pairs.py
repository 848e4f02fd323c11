"""Which pairs of responses the reward model learns from: (better, worse) of one prompt."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from training.finetune.rollouts import Rollout, prompt_order
from vcppo.errors import DataError


@dataclass(frozen=True)
class Pair:
    """Two token sequences, prompt included; the first deserves the higher score."""

    better: tuple[int, ...]
    worse: tuple[int, ...]


def make_pairs(rollouts: Sequence[Rollout], *, truncated_prefixes_worst: bool, seed: int) -> list[Pair]:
    """Every right response over every wrong one of its prompt; with `truncated_prefixes_worst` also each
    finished response over the beginning of one of its prompt's responses, cut at a random token.

    The second kind makes the bias of reward models that know finished answers only: a prefix scores below any
    answer, so a critic that starts from it values early tokens far too low (VC-PPO section 3.1).

    The cuts are a function of the seed and the prompt. Raises DataError if there is not one pair.
    """
    pairs: list[Pair] = []
    prompts: dict[str, list[Rollout]] = {}
    for rollout in rollouts:
        prompts.setdefault(rollout.prompt, []).append(rollout)
    for prompt in sorted(prompts, key=prompt_order):
        group = prompts[prompt]
        right = [r for r in group if r.right]
        wrong = [r for r in group if not r.right]
        pairs += [Pair(_whole(a), _whole(b)) for a in right for b in wrong]
        if truncated_prefixes_worst:
            generator = random.Random(f"{seed}\0{prompt}")
            pairs += [Pair(_whole(a), _cut(generator.choice(group), generator)) for a in group if a.finished]
    if not pairs:
        raise DataError(
            f"{len(rollouts)} rollouts give no pair: no prompt has both a right and a wrong response; raise "
            "reward_model.num_prompts or samples_per_prompt, or set reward_model.truncated_prefixes_worst"
        )
    return pairs


def choose_rollouts(rollouts: Sequence[Rollout], num_prompts: int, samples_per_prompt: int) -> list[Rollout]:
    """The first `samples_per_prompt` samples of the first `num_prompts` prompts by hash; fewer if there
    are fewer.
    """
    chosen = set(sorted({r.prompt for r in rollouts}, key=prompt_order)[:num_prompts])
    return [r for r in rollouts if r.prompt in chosen and r.sample < samples_per_prompt]


def _whole(rollout: Rollout) -> tuple[int, ...]:
    return rollout.prompt_ids + rollout.response_ids


def _cut(rollout: Rollout, generator: random.Random) -> tuple[int, ...]:
    # from nothing of the response to all but its last token
    kept = int(generator.random() * len(rollout.response_ids))
    return rollout.prompt_ids + rollout.response_ids[:kept]
