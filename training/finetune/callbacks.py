"""What happens beside the training loop: progress lines, manifests, and the reasons to stop."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from training.finetune.checkpoints import PREFIX
from vcppo.checkpoints import commit
from vcppo.errors import DivergenceError

Progress = Callable[[int, int, str], None]
"""(steps done, steps in all, figures to show)."""


class ProgressLines(TrainerCallback):
    """Hands every step to the stage, which prints some of them."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        if state.is_world_process_zero and logs and "loss" in logs:
            self.progress(state.global_step, state.max_steps, f"loss {logs['loss']:.4f}")


class StopAtNonFinite(TrainerCallback):
    """Ends the run at the first loss or gradient that is not finite, before weights are saved (verl#498)."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        for name in ("loss", "grad_norm", "eval_value_loss"):
            number = (logs or {}).get(name)
            if number is not None and not math.isfinite(number):
                raise DivergenceError(
                    f"step {state.global_step}: {name} is {number}; the last good checkpoint is kept in "
                    f"{args.output_dir}. "
                    "Lower the learning rate of this stage (optimizer.learning_rate) or raise "
                    "optimizer.warmup_steps"
                )


class CommitCheckpoints(TrainerCallback):
    """Gives each finished checkpoint its manifest, once all processes have written theirs."""

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.barrier()
        if state.is_world_process_zero:
            commit(Path(str(args.output_dir)) / f"{PREFIX}{state.global_step}")


class StopWithoutProgress(TrainerCallback):
    """Ends the run after `patience` evaluations in a row without a new best.

    transformers' own callback keeps a counter; this one reads the history, which every checkpoint holds, so
    that a resumed run decides as an undisturbed one.
    """

    def __init__(self, metric: str, patience: int) -> None:
        self.metric, self.patience = metric, patience

    def exhausted(self, history: list[dict[str, float]]) -> bool:
        """Whether the last `patience` evaluations brought no lower value of the metric."""
        values = [entry[self.metric] for entry in history if self.metric in entry]
        return len(values) > self.patience and min(values[-self.patience :]) >= min(values[: -self.patience])

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        if self.exhausted(state.log_history):
            control.should_training_stop = True
