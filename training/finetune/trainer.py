"""What the three kinds of fine-tuning share: transformers' Trainer, quiet, reproducible and resumable.

A job works in a folder: `checkpoints/` while it runs, then `model/` and `history.json`, the latter written
last. A job whose `history.json` is there is finished and is not run again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformers import PreTrainedModel, Trainer, TrainerState, TrainingArguments

from training.finetune.callbacks import (
    CommitCheckpoints,
    Progress,
    ProgressLines,
    StopAtNonFinite,
    StopWithoutProgress,
)
from training.finetune.checkpoints import PREFIX, sweep_torn
from vcppo.checkpoints import newest_complete
from vcppo.config import Runtime
from vcppo.config.stages import OptimizerConfig
from vcppo.errors import CheckpointError, ConfigurationError
from vcppo.files import write_json_atomic


@dataclass(frozen=True)
class Schedule:
    """How long and how fast."""

    optimizer: OptimizerConfig
    batch_size: int
    num_epochs: float
    seed: int
    save_every_steps: int | None = None
    """None: at every evaluation."""
    evaluations_per_epoch: int | None = None
    """None: never."""
    patience: int | None = None
    """Stop after so many evaluations without a better held-out loss."""

    def num_steps(self, num_examples: int) -> int:
        return math.ceil(self.num_epochs * self.steps_per_epoch(num_examples))

    def steps_per_epoch(self, num_examples: int) -> int:
        return math.ceil(num_examples / self.batch_size)


class Examples(Dataset):
    """A list of examples as a torch dataset."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        return self.rows[index]


@dataclass(frozen=True)
class Objective:
    """What is minimised, and what is measured beside it."""

    collate: Callable[[list[Any]], dict[str, Tensor]]
    loss: Callable[..., Tensor] | None = None
    """(outputs, labels, num_items_in_batch) -> loss; None: the model's own."""
    metrics: Callable[[Any], dict[str, float]] | None = None
    best: str | None = None
    """Metric whose lowest value marks the weights to keep; None: the last ones."""


def is_finished(folder: Path) -> bool:
    """Whether an earlier attempt has run this job to its end."""
    return (folder / "history.json").is_file()


def read_history(folder: Path) -> list[dict[str, Any]]:
    """Log of a finished job: one entry a step (step, loss, grad_norm, learning_rate), one an evaluation
    (eval_...).
    """
    return json.loads((folder / "history.json").read_text(encoding="utf-8"))


def fit(
    model: PreTrainedModel,
    train: Sequence[Any],
    held_out: Sequence[Any],
    objective: Objective,
    schedule: Schedule,
    folder: Path,
    runtime: Runtime,
    progress: Progress,
    save: Callable[[PreTrainedModel], None],
) -> None:
    """Train `model` in place, hand it to `save` (called in one process only), then write `history.json`.

    Goes on from the newest whole checkpoint in `folder`. Every random choice comes from `schedule.seed`.

    Raises:
        DivergenceError: a loss or gradient is not finite; nothing of that step was saved.
        ConfigurationError: the batch size cannot be shared out over the workers.
        CheckpointError: training ended before its last step.
    """
    root = folder / "checkpoints"
    arguments = training_arguments(schedule, len(train), objective, root, runtime)
    stop = StopWithoutProgress("eval_value_loss", schedule.patience) if schedule.patience else None
    cached = model.config.use_cache
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=Examples(train),
        eval_dataset=Examples(held_out) if objective.metrics else None,
        data_collator=objective.collate,
        compute_loss_func=objective.loss,
        compute_metrics=objective.metrics,
        callbacks=[
            ProgressLines(progress),
            StopAtNonFinite(),
            CommitCheckpoints(),
            *([stop] if stop else []),
        ],
    )
    for callback in list(trainer.callback_handler.callbacks):
        if type(callback).__name__ in ("PrinterCallback", "ProgressCallback"):
            trainer.remove_callback(callback)
    if trainer.is_world_process_zero():
        sweep_torn(root)
    trainer.accelerator.wait_for_everyone()
    newest = newest_complete(root, PREFIX)
    trainer.args.eval_on_start = objective.metrics is not None and newest is None
    _train(trainer, newest[1] if newest else None, stop)
    model.config.use_cache = cached
    if trainer.is_world_process_zero():
        save(model)
        # the last entry sums up this attempt only
        history = [_figures(entry) for entry in trainer.state.log_history if "train_loss" not in entry]
        write_json_atomic(folder / "history.json", history)
    trainer.accelerator.wait_for_everyone()


def training_arguments(
    schedule: Schedule, num_examples: int, objective: Objective, root: Path, runtime: Runtime
) -> TrainingArguments:
    """transformers' arguments: AdamW, linear warm-up to a constant rate, a log entry a step, nothing
    sent anywhere.
    """
    per_device, accumulation = split_batch(schedule.batch_size, runtime)
    evaluate_every = save_every = schedule.save_every_steps or 1
    if schedule.evaluations_per_epoch:
        evaluate_every = max(1, schedule.steps_per_epoch(num_examples) // schedule.evaluations_per_epoch)
        save_every = schedule.save_every_steps or evaluate_every
    on_cpu = runtime.device == "cpu"
    return TrainingArguments(
        output_dir=str(root),
        use_cpu=on_cpu,
        bf16=not on_cpu,
        ddp_backend="gloo" if on_cpu and torch.distributed.is_initialized() else None,
        per_device_train_batch_size=per_device,
        per_device_eval_batch_size=per_device,
        gradient_accumulation_steps=accumulation,
        max_steps=schedule.num_steps(num_examples),
        learning_rate=schedule.optimizer.learning_rate,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=schedule.optimizer.warmup_steps,
        weight_decay=schedule.optimizer.weight_decay,
        max_grad_norm=schedule.optimizer.max_grad_norm,
        optim="adamw_torch",
        seed=schedule.seed,
        data_seed=schedule.seed,
        logging_strategy="steps",
        logging_steps=1,
        # the default replaces a nan by the mean of the losses before it
        logging_nan_inf_filter=False,
        eval_strategy="steps" if objective.metrics else "no",
        eval_steps=evaluate_every,
        save_strategy="steps",
        save_steps=save_every,
        # one more than is needed: the older one stays whole while the newer has no manifest yet
        save_total_limit=2,
        load_best_model_at_end=objective.best is not None,
        metric_for_best_model=objective.best,
        greater_is_better=False,
        remove_unused_columns=False,
        disable_tqdm=True,
        report_to=[],
    )


def split_batch(batch_size: int, runtime: Runtime) -> tuple[int, int]:
    """(sequences a forward pass, passes an update) of each process: the largest micro-batch that divides its
    share.

    Raises ConfigurationError if the workers cannot share the batch evenly.
    """
    workers = runtime.num_nodes * runtime.devices_per_node
    if batch_size % workers:
        raise ConfigurationError(
            f"batch_size ({batch_size}) must be a multiple of the number of workers ({workers} = "
            f"VCPPO_NUM_NODES x VCPPO_DEVICES_PER_NODE)"
        )
    share = batch_size // workers
    micro = next(size for size in range(min(share, runtime.micro_batch_size), 0, -1) if share % size == 0)
    return micro, share // micro


def _train(trainer: Trainer, newest: Path | None, stop: StopWithoutProgress | None) -> None:
    if newest is not None:
        state = TrainerState.load_from_json(str(newest / "trainer_state.json"))
        if _is_done(state, stop):
            # killed between the last update and the end; transformers would make one update too many
            trainer.state = state
            if trainer.args.load_best_model_at_end:
                trainer._load_best_model()
            else:
                trainer._load_from_checkpoint(str(newest))
            return
    trainer.train(resume_from_checkpoint=str(newest) if newest else None)
    if not _is_done(trainer.state, stop):
        raise CheckpointError(
            f"{trainer.args.output_dir}: training ended at step {trainer.state.global_step} of "
            f"{trainer.state.max_steps}; remove this directory and run the stage again"
        )


def _is_done(state: TrainerState, stop: StopWithoutProgress | None) -> bool:
    return state.global_step >= state.max_steps or (stop is not None and stop.exhausted(state.log_history))


def _figures(entry: dict[str, float]) -> dict[str, float | None]:
    """A log entry without the wall clock, which differs from run to run; None for what is not finite."""
    kept = {key: value for key, value in entry.items() if not key.endswith(("_runtime", "_per_second"))}
    return {key: value if math.isfinite(value) else None for key, value in kept.items()}


def limit_threads(runtime: Runtime) -> None:
    """Set torch's threads of this process; their number is part of the bits."""
    torch.set_num_threads(runtime.threads_per_process)
