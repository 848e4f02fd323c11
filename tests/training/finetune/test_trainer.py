"""What the kinds of fine-tuning share: batches, seeds, early stop, non-finite numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.training.finetune import small
from training.finetune.callbacks import StopWithoutProgress
from training.finetune.distributed import run_job
from training.finetune.trainer import read_history, split_batch
from training.models.seeds import derive_seed
from vcppo.config import Runtime
from vcppo.config.stages import OptimizerConfig
from vcppo.errors import ConfigurationError, DivergenceError


@pytest.mark.parametrize(
    ("batch", "workers", "micro", "expected"),
    [(64, 1, 64, (64, 1)), (64, 2, 64, (32, 1)), (48, 1, 32, (24, 2)), (7, 1, 4, (1, 7)), (8, 4, 64, (2, 1))],
)
def test_batches_are_cut_into_equal_passes(
    batch: int, workers: int, micro: int, expected: tuple[int, int]
) -> None:
    assert split_batch(batch, Runtime(devices_per_node=workers, micro_batch_size=micro)) == expected


def test_a_batch_that_workers_cannot_share_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"batch_size \(9\).*multiple of the number of workers \(2"):
        split_batch(9, Runtime(devices_per_node=2))


def test_seeds_of_different_purposes_differ_and_fit_32_bits() -> None:
    seeds = {derive_seed(seed, purpose) for seed in range(50) for purpose in ("sft", "critic head")}
    assert len(seeds) == 100
    assert all(0 <= seed < 2**32 for seed in seeds)


@pytest.mark.parametrize(
    ("losses", "exhausted"),
    [
        ([1.0], False),
        ([1.0, 0.9, 0.8, 0.7], False),
        ([1.0, 0.9, 0.95], False),
        ([1.0, 0.9, 0.95, 0.9], True),
        ([1.0, 0.9, 0.95, 0.8], False),
        ([0.5, 0.6], False),
        ([0.5, 0.6, 0.7], True),
    ],
)
def test_patience_of_two_evaluations(losses: list[float], exhausted: bool) -> None:
    history = [{"eval_value_loss": loss, "step": i} for i, loss in enumerate(losses)]
    history.insert(1, {"loss": 0.0, "step": 1})
    assert StopWithoutProgress("eval_value_loss", 2).exhausted(history) is exhausted


def test_micro_batches_give_the_gradient_of_the_whole_batch(tmp_path: Path) -> None:
    """Responses differ in length: a mean of means would not."""
    weights = []
    for micro in (8, 2):
        folder = tmp_path / str(micro)
        job = small.make_job("sft", folder, folder, Runtime(micro_batch_size=micro))
        run_job(small.RUNNERS["sft"], job, small.ignore)
        weights.append([entry["loss"] for entry in read_history(folder) if "loss" in entry])
    assert weights[0] == pytest.approx(weights[1], rel=1e-4)


def test_non_finite_numbers_end_the_run_before_they_are_saved(tmp_path: Path) -> None:
    # the first update ruins the weights; step 2 has no finite loss
    ruin = OptimizerConfig(learning_rate=1e30)
    with pytest.raises(
        DivergenceError, match=r"step \d+: (loss|grad_norm) is (nan|inf).*optimizer.learning_rate"
    ):
        run_job(
            small.RUNNERS["sft"],
            small.make_job("sft", tmp_path, tmp_path, optimizer=ruin, save_every_steps=1),
            small.ignore,
        )
    assert not (tmp_path / "history.json").exists()
    saved = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert saved <= {"checkpoint-1"}


def test_the_callers_generators_do_not_matter(tmp_path: Path) -> None:
    histories = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        run_job(small.RUNNERS["sft"], small.make_job("sft", tmp_path / str(seed), tmp_path), small.ignore)
        histories.append(json.loads((tmp_path / str(seed) / "history.json").read_text()))
    assert histories[0] == histories[1]
