"""Reward model: Bradley-Terry on pairs, read at a sequence's last token.

Its output is then rescaled to the mean and deviation of the reward on finished responses, so that it can
serve as a critic: the values of finished answers are right on average, those of prefixes as wrong as the
reward model makes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from training.finetune.batches import pad_right
from training.finetune.callbacks import Progress
from training.finetune.inference import predict_values
from training.finetune.pairs import Pair, make_pairs
from training.finetune.rollouts import Rollout, split_by_prompt
from training.finetune.trainer import Objective, Schedule, fit
from training.models import new_value_model, save_value_model
from training.models.policy import load_folder_tokenizer
from training.models.seeds import derive_seed
from training.models.value import value_head
from vcppo.config import RewardModelConfig, Runtime
from vcppo.errors import DataError
from vcppo.files import write_json_atomic

HELD_OUT_FRACTION = 0.1


@dataclass(frozen=True)
class RewardModelJob:
    """Everything that `run` needs, picklable."""

    stage: str
    folder: Path
    runtime: Runtime
    trunk: Path
    """The SFT policy."""
    config: RewardModelConfig
    seed: int
    rollouts: tuple[Rollout, ...]


def collate(pairs: list[Pair]) -> dict[str, Tensor]:
    """input_ids [2B, T] with better and worse in turn; labels [2B]: position of each sequence's last
    token.
    """
    sequences = [sequence for pair in pairs for sequence in (pair.better, pair.worse)]
    return {
        "input_ids": pad_right(sequences, 0, torch.int64),
        "labels": torch.tensor([len(sequence) - 1 for sequence in sequences]),
    }


def bradley_terry(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
    """Mean of -log sigmoid(score of better - score of worse). num_items_in_batch: labels of the whole update,
    two a pair."""
    scores = outputs.logits.squeeze(-1).float()
    last = scores.gather(1, labels[:, None])[:, 0]
    losses = -torch.nn.functional.logsigmoid(last[0::2] - last[1::2])
    return losses.mean() if num_items_in_batch is None else 2 * losses.sum() / num_items_in_batch


def run(job: RewardModelJob, progress: Progress) -> None:
    """Train; leaves `model/`, `measured.json` and `history.json` in `job.folder`."""
    train, held_out = split_by_prompt(job.rollouts, HELD_OUT_FRACTION)
    pairs = make_pairs(train, truncated_prefixes_worst=job.config.truncated_prefixes_worst, seed=job.seed)
    tokenizer = load_folder_tokenizer(job.trunk)

    def save(model: PreTrainedModel) -> None:
        batch = job.runtime.micro_batch_size
        measured = {"num_pairs": len(pairs), **rescale(model, train, batch), **measure(model, held_out, job)}
        save_value_model(model, tokenizer, job.folder / "model")
        write_json_atomic(job.folder / "measured.json", measured)

    fit(
        new_value_model(job.trunk, derive_seed(job.seed, "reward_model head")),
        pairs,
        (),
        Objective(collate, bradley_terry),
        Schedule(
            optimizer=job.config.optimizer,
            batch_size=job.config.batch_size,
            num_epochs=job.config.num_epochs,
            seed=derive_seed(job.seed, "reward_model"),
            save_every_steps=50,
        ),
        job.folder,
        job.runtime,
        progress,
        save,
    )


def rescale(model: PreTrainedModel, rollouts: list[Rollout], batch_size: int) -> dict[str, float]:
    """Change the head so that over finished rollouts its output has mean and deviation of their scores.

    Returns scale and shift. Raises DataError if scores or outputs are all equal: there is nothing to match.
    """
    finished = [r for r in rollouts if r.finished] or rollouts
    outputs = torch.stack([v[-1] for v in predict_values(model, [_ids(r) for r in finished], batch_size)])
    scores = torch.tensor([r.score for r in finished])
    spread, wanted = outputs.double().std(correction=0), scores.double().std(correction=0)
    if not spread > 0 or not wanted > 0:
        raise DataError(
            f"reward model: over {len(finished)} finished rollouts the reward deviates by "
            f"{wanted.item():.3g} and the "
            f"model's output by {spread.item():.3g}; both must differ between rollouts. Draw more, or "
            "harder, prompts"
        )
    scale = (wanted / spread).item()
    shift = scores.double().mean().item() - scale * outputs.double().mean().item()
    head = value_head(model)
    with torch.no_grad():
        head.weight.mul_(scale)
        head.bias.mul_(scale).add_(shift)
    return {"scale": scale, "shift": shift}


def measure(model: PreTrainedModel, held_out: list[Rollout], job: RewardModelJob) -> dict[str, Any]:
    """On held-out prompts: share of pairs in the right order, mean value of right, wrong and cut
    responses.
    """
    try:
        pairs = make_pairs(
            held_out, truncated_prefixes_worst=job.config.truncated_prefixes_worst, seed=job.seed
        )
    except DataError:
        return {"held_out_pairs": 0, "held_out_pair_accuracy": None}
    batch = job.runtime.micro_batch_size
    better = [v[-1] for v in predict_values(model, [p.better for p in pairs], batch)]
    worse = [v[-1] for v in predict_values(model, [p.worse for p in pairs], batch)]
    values = predict_values(model, [_ids(r) for r in held_out], batch)
    first = [v[len(r.prompt_ids) - 1].item() for v, r in zip(values, held_out, strict=True)]
    return {
        "held_out_pairs": len(pairs),
        "held_out_pair_accuracy": sum(bool(a > b) for a, b in zip(better, worse, strict=True)) / len(pairs),
        "value_right": _mean([v[-1].item() for v, r in zip(values, held_out, strict=True) if r.right]),
        "value_wrong": _mean([v[-1].item() for v, r in zip(values, held_out, strict=True) if not r.right]),
        "value_of_prompt": _mean(first),
        "mean_score": _mean([r.score for r in held_out]),
    }


def _ids(rollout: Rollout) -> tuple[int, ...]:
    return rollout.prompt_ids + rollout.response_ids


def _mean(numbers: list[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None
