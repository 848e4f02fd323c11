"""Value pretraining (VC-PPO, arXiv 2503.01491, section 3.1): fit a critic to Monte-Carlo returns of the
frozen policy.

    loss = mean over response tokens of 0.5 (V_t - R_t)^2,   R_t = gamma^(T-1-t) * score    (lambda = 1)

V_t is the value before token t is emitted, i.e. the output after the token before it, as in verl: the values
of a response of T tokens are the outputs at positions prompt-1 .. prompt+T-2 (verl/workers/utils/padding.py,
response_from_nested).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import EvalPrediction, PreTrainedModel

from training.finetune.batches import IGNORED, pad_right
from training.finetune.calibration import calibrate, held_out_measures
from training.finetune.callbacks import Progress
from training.finetune.inference import predict_values
from training.finetune.rollouts import Rollout, split_by_prompt
from training.finetune.trainer import Objective, Schedule, fit
from training.models import load_value_model, new_value_model, save_value_model
from training.models.policy import load_folder_tokenizer
from training.models.seeds import derive_seed
from vcppo.config import PretrainCriticConfig, Runtime
from vcppo.errors import ConfigurationError
from vcppo.files import write_json_atomic


@dataclass(frozen=True)
class CriticJob:
    """Everything that `run` needs, picklable."""

    stage: str
    folder: Path
    runtime: Runtime
    trunk: Path
    """The SFT policy, or the reward model when `config.start_from` says so."""
    config: PretrainCriticConfig
    gamma: float
    seed: int
    rollouts: tuple[Rollout, ...]


@dataclass(frozen=True)
class Regression:
    """One response as input tokens and target values."""

    ids: tuple[int, ...]
    """Prompt and response without its last token: nothing is valued after that."""
    returns: tuple[float, ...]
    """One a response token; the last of `ids` carries the last of them."""


def regression(rollout: Rollout, gamma: float) -> Regression:
    """Monte-Carlo returns of a rollout whose score comes with its last token."""
    length = len(rollout.response_ids)
    return Regression(
        ids=rollout.prompt_ids + rollout.response_ids[:-1],
        returns=tuple(rollout.score * gamma ** (length - 1 - t) for t in range(length)),
    )


def collate(examples: list[Regression]) -> dict[str, Tensor]:
    """input_ids [B, T] and labels [B, T]: the return at each valued position, IGNORED elsewhere."""
    labels = [[IGNORED] * (len(e.ids) - len(e.returns)) + list(e.returns) for e in examples]
    return {
        "input_ids": pad_right([e.ids for e in examples], 0, torch.int64),
        "labels": pad_right(labels, IGNORED, torch.float32),
    }


def value_loss(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
    """Mean of 0.5 (V - R)^2 over the valued positions of the update (num_items_in_batch)."""
    values = outputs.logits.squeeze(-1).float()
    chosen = labels != IGNORED
    losses = 0.5 * (values[chosen] - labels[chosen]) ** 2
    return losses.mean() if num_items_in_batch is None else losses.sum() / num_items_in_batch


def metrics(prediction: EvalPrediction) -> dict[str, float]:
    """Held-out measures during training; predictions and labels are [rollouts, T]."""
    values = torch.as_tensor(prediction.predictions).squeeze(-1)
    labels = torch.as_tensor(prediction.label_ids)
    return held_out_measures(values, labels, labels != IGNORED)


def run(job: CriticJob, progress: Progress) -> None:
    """Train; leaves the best weights in `model/`, `measured.json` and `history.json` in `job.folder`.

    Raises CheckpointError: the reward model to start from has no value head, or other than one label.
    """
    train, held_out = split_by_prompt(job.rollouts, job.config.held_out_fraction)
    bound = max(abs(rollout.score) for rollout in job.rollouts)
    if bound >= abs(IGNORED):
        raise ConfigurationError(
            f"train.reward: rewards reach {bound:g}; value pretraining allows less than {abs(IGNORED)} in "
            "size"
        )
    tokenizer = load_folder_tokenizer(job.trunk)

    def save(model: PreTrainedModel) -> None:
        save_value_model(model, tokenizer, job.folder / "model")
        examples = [regression(rollout, job.gamma) for rollout in held_out]
        outputs = predict_values(model, [e.ids for e in examples], job.runtime.micro_batch_size)
        values = [v[-len(e.returns) :] for v, e in zip(outputs, examples, strict=True)]
        measured = calibrate(held_out, values, [torch.tensor(e.returns) for e in examples])
        write_json_atomic(job.folder / "measured.json", {"num_train": len(train), **measured})

    fit(
        start(job),
        [regression(rollout, job.gamma) for rollout in train],
        [regression(rollout, job.gamma) for rollout in held_out],
        Objective(collate, value_loss, metrics, best="value_loss"),
        Schedule(
            optimizer=job.config.optimizer,
            batch_size=job.config.batch_size,
            num_epochs=job.config.max_epochs,
            seed=derive_seed(job.seed, "pretrain_critic"),
            evaluations_per_epoch=job.config.evaluations_per_epoch,
            patience=job.config.patience,
        ),
        job.folder,
        job.runtime,
        progress,
        save,
    )


def start(job: CriticJob) -> PreTrainedModel:
    """The critic before pretraining: the policy's trunk with a fresh head, or the reward model, head
    included.
    """
    if job.config.start_from == "reward_model":
        return load_value_model(job.trunk)
    return new_value_model(job.trunk, derive_seed(job.seed, "critic head"))
