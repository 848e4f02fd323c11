"""SFT: imitate given responses. The loss is the mean over response tokens, end of sequence included."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from training.finetune.batches import IGNORED, pad_right
from training.finetune.callbacks import Progress
from training.finetune.trainer import Objective, Schedule, fit
from training.models import build_initial_policy, load_tokenizer, save_policy
from training.models.seeds import derive_seed
from vcppo.config import ModelConfig, Runtime
from vcppo.config.stages import SftConfig
from vcppo.errors import DataError


@dataclass(frozen=True)
class Trace:
    """One example: the response begins after `prompt_length` tokens."""

    ids: tuple[int, ...]
    prompt_length: int


@dataclass(frozen=True)
class SftJob:
    """Everything that `run` needs, picklable."""

    stage: str
    folder: Path
    runtime: Runtime
    model: ModelConfig
    sft: SftConfig
    seed: int
    traces: tuple[Trace, ...]


def read_traces(
    path: Path, model: ModelConfig, max_prompt_tokens: int, max_response_tokens: int
) -> tuple[list[Trace], int]:
    """(traces in the file's order, how many were left out as too long) of data/prepared/sft.parquet.

    A response over the limit (end of sequence included) is left out: cut, it would teach to break off.

    Raises DataError: no trace in the file, none short enough, or a character that the tokenizer cannot
    express.
    """
    import pyarrow.parquet as pq

    tokenizer = load_tokenizer(model)
    rows = pq.read_table(path).to_pylist()
    if not rows:
        raise DataError(
            f"{path}: holds no trace to imitate; give a source with solutions (solution_column, "
            "sft_traces_per_problem), "
            "or set sft.enabled: false to start from the model as it is"
        )
    encoded = [encode_trace(tokenizer, row, path) for row in rows]
    traces = [
        trace
        for trace in encoded
        if trace.prompt_length <= max_prompt_tokens
        and len(trace.ids) - trace.prompt_length <= max_response_tokens
    ]
    if not traces:
        raise DataError(
            f"{path}: each of its {len(rows)} traces is longer than data.max_prompt_tokens "
            f"({max_prompt_tokens}) and "
            f"data.max_response_tokens ({max_response_tokens}) allow; raise the limits"
        )
    return traces, len(rows) - len(traces)


def encode_trace(tokenizer: PreTrainedTokenizerBase, row: dict[str, Any], path: Path) -> Trace:
    """One row of sft.parquet as token ids, closed with the end of sequence."""
    from training.models import lost_characters

    lost = lost_characters(tokenizer, row["response"])
    if lost:
        raise DataError(
            f"{path}: response of {row['id']}: the tokenizer has no token for {lost!r}; use another model"
        )
    messages = [{"role": m["role"], "content": m["content"]} for m in row["prompt"]]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    response = tokenizer(row["response"], add_special_tokens=False)["input_ids"]
    return Trace(tuple([*prompt, *response, tokenizer.eos_token_id]), len(prompt))


def collate(traces: list[Trace]) -> dict[str, Tensor]:
    """input_ids and labels, both [B, T]; the model itself shifts the labels."""
    labels = [[IGNORED] * trace.prompt_length + list(trace.ids[trace.prompt_length :]) for trace in traces]
    return {
        # whatever fills the right side: nothing before it attends to it, and no label asks for it
        "input_ids": pad_right([trace.ids for trace in traces], 0, torch.int64),
        "labels": pad_right(labels, IGNORED, torch.int64),
    }


def run(job: SftJob, progress: Progress) -> None:
    """Train the policy of `job.model` on its traces; leaves `model/` and `history.json` in `job.folder`."""
    policy, tokenizer = build_initial_policy(job.model, job.seed)
    stored = policy.dtype
    fit(
        policy.float(),
        job.traces,
        (),
        Objective(collate),
        Schedule(
            optimizer=job.sft.optimizer,
            batch_size=job.sft.batch_size,
            num_epochs=job.sft.num_epochs,
            seed=derive_seed(job.seed, "sft"),
            save_every_steps=job.sft.save_every_steps,
        ),
        job.folder,
        job.runtime,
        progress,
        lambda model: save_policy(model.to(stored), tokenizer, job.folder / "model"),
    )
