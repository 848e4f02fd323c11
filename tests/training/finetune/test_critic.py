"""Value pretraining: targets, alignment with verl, the loss, where it starts."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.training.finetune import small
from training.finetune.batches import IGNORED
from training.finetune.critic import collate, regression, value_loss
from training.finetune.distributed import run_job
from training.finetune.rollouts import Rollout, split_by_prompt
from training.finetune.trainer import read_history
from training.models import load_value_model, new_value_model, save_value_model
from training.models.policy import load_folder_tokenizer
from vcppo.errors import CheckpointError, ConfigurationError

ROLLOUT = Rollout("p", 0, (11, 12, 13), (21, 22, 23, 2), 1.0, True, True)


def test_returns_are_the_discounted_score() -> None:
    assert regression(ROLLOUT, 1.0).returns == (1.0, 1.0, 1.0, 1.0)
    assert regression(ROLLOUT, 0.5).returns == (0.125, 0.25, 0.5, 1.0)


def test_returns_are_those_of_gae_with_lambda_one(rollouts: list[Rollout]) -> None:
    from training.algorithms import decoupled_gae, place_score_on_last_token

    lengths = [len(r.response_ids) for r in rollouts]
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    rewards = place_score_on_last_token(torch.tensor([r.score for r in rollouts]), mask)
    values = torch.randn(mask.shape, generator=torch.Generator().manual_seed(1))
    _, returns = decoupled_gae(rewards, values, mask, gamma=0.9, lam_critic=1.0)
    for row, rollout in zip(returns, rollouts, strict=True):
        expected = torch.tensor(regression(rollout, 0.9).returns)
        torch.testing.assert_close(row[: len(expected)], expected, rtol=1e-5, atol=1e-5)


def test_the_valued_positions_are_those_that_verl_reads() -> None:
    """verl cuts [prompt-1, prompt+response-1) out of the outputs over prompt and response
    (response_from_nested).
    """
    padding = pytest.importorskip("verl.workers.utils.padding")
    other = Rollout("q", 0, (11,), (21, 2), -1.0, False, True)
    both = [ROLLOUT, other]
    positions = torch.nested.as_nested_tensor(
        [torch.arange(len(r.prompt_ids + r.response_ids)) for r in both], layout=torch.jagged
    )
    responses = torch.nested.as_nested_tensor(
        [torch.ones(len(r.response_ids)) for r in both], layout=torch.jagged
    )
    read = padding.response_from_nested(positions, responses)
    labels = collate([regression(r, 1.0) for r in both])["labels"]
    for row, theirs in zip(labels, read.unbind(), strict=True):
        assert (row != IGNORED).nonzero()[:, 0].tolist() == theirs.tolist()


def test_the_loss_is_half_the_squared_error_over_response_tokens() -> None:
    labels = torch.tensor([[IGNORED, 1.0, 1.0], [IGNORED, -1.0, IGNORED]])
    logits = torch.tensor([[9.0, 0.0, 2.0], [9.0, 1.0, 9.0]])[..., None]
    outputs = SimpleNamespace(logits=logits)
    assert value_loss(outputs, labels).item() == pytest.approx(0.5 * (1 + 1 + 4) / 3)
    assert value_loss(outputs, labels, num_items_in_batch=6).item() == pytest.approx(0.5 * (1 + 1 + 4) / 6)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, policy_folder: Path) -> Path:
    folder = tmp_path_factory.mktemp("critic")
    job = small.make_job("critic", folder, policy_folder, max_epochs=12, patience=8)
    run_job(small.RUNNERS["critic"], job, small.ignore)
    return folder


def test_it_learns_what_can_be_foreseen_on_held_out_prompts(trained: Path) -> None:
    measured = json.loads((trained / "measured.json").read_text())
    evaluations = [entry for entry in read_history(trained) if "eval_value_loss" in entry]
    assert evaluations[0]["step"] == 0
    assert measured["explained_variance"] > 0.2 > evaluations[0]["eval_explained_variance"]
    right, wrong = measured["by_correctness"]["right"], measured["by_correctness"]["wrong"]
    assert right["value"] > wrong["value"] + 0.5


def test_the_best_weights_are_kept_and_training_stops_without_progress(trained: Path) -> None:
    losses = [entry["eval_value_loss"] for entry in read_history(trained) if "eval_value_loss" in entry]
    measured = json.loads((trained / "measured.json").read_text())
    assert measured["value_loss"] == pytest.approx(min(losses), rel=1e-5)
    assert len(losses) < 1 + 12 * 5, "patience ended it before the last epoch"
    assert min(losses[:-8]) <= min(losses[-8:])


def test_held_out_prompts_are_not_trained_on(trained: Path, rollouts: list[Rollout]) -> None:
    measured = json.loads((trained / "measured.json").read_text())
    train, held_out = split_by_prompt(rollouts, 0.1)
    assert (measured["num_train"], measured["num_held_out"]) == (len(train), len(held_out))


def test_the_result_is_a_critic_with_a_head_of_its_own(trained: Path) -> None:
    assert load_value_model(trained / "model").config.num_labels == 1


def test_start_from_reward_model_refuses_a_policy_and_two_labels(tmp_path: Path, policy_folder: Path) -> None:
    with pytest.raises(CheckpointError, match="no value head"):
        job = small.make_job("critic", tmp_path / "a", policy_folder, start_from="reward_model")
        run_job(small.RUNNERS["critic"], job, small.ignore)
    tokenizer = load_folder_tokenizer(policy_folder)
    save_value_model(new_value_model(policy_folder, seed=1), tokenizer, tmp_path / "two")
    config = json.loads((tmp_path / "two" / "config.json").read_text())
    config["id2label"] = {"0": "a", "1": "b"}
    (tmp_path / "two" / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="exactly one"):
        job = small.make_job("critic", tmp_path / "b", tmp_path / "two", start_from="reward_model")
        run_job(small.RUNNERS["critic"], job, small.ignore)


def test_start_from_reward_model_begins_with_its_head(tmp_path: Path, policy_folder: Path) -> None:
    model = new_value_model(policy_folder, seed=1)
    with torch.no_grad():
        model.score.bias.fill_(-3.0)
    save_value_model(model, load_folder_tokenizer(policy_folder), tmp_path / "biased")
    job = small.make_job(
        "critic", tmp_path / "job", tmp_path / "biased", start_from="reward_model", max_epochs=1
    )
    run_job(small.RUNNERS["critic"], job, small.ignore)
    first = next(entry for entry in read_history(tmp_path / "job") if "eval_value_bias" in entry)
    assert first["eval_value_bias"] < -2.0


def test_rewards_that_look_like_the_ignored_label_are_refused(tmp_path: Path, policy_folder: Path) -> None:
    from dataclasses import replace

    job = small.make_job("critic", tmp_path, policy_folder)
    job = replace(job, rollouts=tuple(replace(r, score=100 * r.score) for r in job.rollouts))
    with pytest.raises(ConfigurationError, match=r"train\.reward: rewards reach 100"):
        run_job(small.RUNNERS["critic"], job, small.ignore)
