"""Outputs of a value model for many sequences, without gradient."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from training.finetune.batches import pad_right


def predict_values(
    model: PreTrainedModel, sequences: Sequence[Sequence[int]], batch_size: int
) -> list[Tensor]:
    """For each sequence the model's output after each of its tokens: float32 [its length], on the CPU.

    Longest first, so that a batch holds sequences of like length; the result is in the order given.
    """
    order = sorted(range(len(sequences)), key=lambda i: -len(sequences[i]))
    values: list[Tensor] = [torch.empty(0)] * len(sequences)
    training = model.training
    model.eval()
    with torch.no_grad():
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            ids = pad_right([sequences[i] for i in chosen], 0, torch.int64).to(model.device)
            outputs = model(input_ids=ids, use_cache=False).logits.squeeze(-1).float().cpu()
            for row, i in enumerate(chosen):
                values[i] = outputs[row, : len(sequences[i])].clone()
    model.train(training)
    return values
