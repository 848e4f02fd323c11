"""Decoupled GAE against a float64 loop written from the paper, on both of its paths."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from training.algorithms import decoupled_gae, place_score_on_last_token
from training.algorithms.blocked_scan import blocked_gae
from training.algorithms.compiled_scan import compiled_gae
from vcppo.errors import ConfigurationError, DataError

SCANS = pytest.mark.parametrize("scan", [compiled_gae, blocked_gae])
JUNK = (math.inf, -math.inf, math.nan, 100.0, 3e38)
Scan = Callable[..., tuple[Tensor, Tensor, int]]
Batch = tuple[Tensor, Tensor, Tensor]  # rewards, values, mask


def reference(
    rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float | Tensor
) -> tuple[Tensor, Tensor]:
    """Single-lambda (advantages, returns) in float64, token by token over the trainable tokens of a row."""
    advantages, returns = torch.zeros(values.shape).double(), torch.zeros(values.shape).double()
    lams = torch.as_tensor(lam, dtype=torch.float64).expand(len(values))
    for row in range(len(values)):
        next_value, advantage = 0.0, 0.0
        for token in reversed(mask[row].nonzero().flatten().tolist()):
            value = values[row, token].double().item()
            delta = rewards[row, token].double().item() + gamma * next_value - value
            advantage = delta + gamma * lams[row].item() * advantage
            advantages[row, token], returns[row, token] = advantage, advantage + value
            next_value = value
    return advantages, returns


def assert_close(ours: Tensor, expected: Tensor) -> None:
    """Within 1e-5, relative to max(1, |value|): what issue 3 promises."""
    error = (ours.double() - expected).abs() / expected.abs().clamp_min(1.0)
    assert error.max().item() <= 1e-5


def random_batch(seed: int, batch_size: int, width: int, *, holes: float = 0.3) -> Batch:
    """Rewards, values and a mask with holes, right padding and, in the last of several rows, no token."""
    generator = torch.Generator().manual_seed(seed)
    rewards = torch.randn(batch_size, width, generator=generator)
    values = 3.0 * torch.randn(batch_size, width, generator=generator)
    mask = torch.rand(batch_size, width, generator=generator) >= holes
    lengths = torch.randint(1, width + 1, (batch_size, 1), generator=generator)
    mask &= torch.arange(width) < lengths
    mask[0, 0] = True
    if batch_size > 1:
        mask[-1] = False
    return rewards, values, mask.long()


batches = st.builds(
    random_batch,
    st.integers(0, 2**31),
    st.integers(1, 5),
    st.integers(1, 70),
    holes=st.sampled_from([0.0, 0.3, 0.9]),
)
unit = st.one_of(st.sampled_from([0.0, 0.95, 1.0]), st.floats(0.0, 1.0))


def scanned(
    scan: Scan, batch: tuple[Tensor, ...], gamma: float, lam_actor: float | Tensor, lam_critic: float
) -> tuple[Tensor, Tensor]:
    rewards, values, mask = batch
    lam_actor = torch.as_tensor(lam_actor, dtype=torch.float64).expand(len(values)).contiguous()
    advantages, returns, num_trainable = scan(rewards, values, mask, gamma, lam_actor, lam_critic)
    assert num_trainable == int((mask != 0).sum())
    return advantages, returns


@SCANS
@settings(max_examples=60, deadline=None)
@given(batch=batches, gamma=unit, lam_actor=unit, lam_critic=unit)
def test_both_scans_equal_the_float64_reference(
    scan: Scan, batch: Batch, gamma: float, lam_actor: float, lam_critic: float
) -> None:
    advantages, returns = scanned(scan, batch, gamma, lam_actor, lam_critic)
    assert_close(advantages, reference(*batch, gamma, lam_actor)[0])
    assert_close(returns, reference(*batch, gamma, lam_critic)[1])


@SCANS
@settings(max_examples=30, deadline=None)
@given(batch=batches, gamma=unit, data=st.data())
def test_each_response_may_have_a_lambda_of_its_own(
    scan: Scan, batch: Batch, gamma: float, data: st.DataObject
) -> None:
    size = len(batch[0])
    lams = torch.tensor(data.draw(st.lists(unit, min_size=size, max_size=size)), dtype=torch.float64)
    advantages, returns = scanned(scan, batch, gamma, lams, 1.0)
    assert_close(advantages, reference(*batch, gamma, lams)[0])
    assert_close(returns, reference(*batch, gamma, 1.0)[1])


@SCANS
@settings(max_examples=60, deadline=None)
@given(batch=batches, gamma=unit, lam_actor=unit, junk=st.lists(st.sampled_from(JUNK), min_size=1))
def test_junk_in_masked_slots_changes_nothing(
    scan: Scan, batch: Batch, gamma: float, lam_actor: float, junk: list[float]
) -> None:
    rewards, values, mask = batch
    fill = torch.tensor(junk).repeat(mask.numel() // len(junk) + 1)[: mask.numel()].view(mask.shape)
    spoilt = torch.where(mask == 0, fill, rewards), torch.where(mask == 0, fill.flip(0), values), mask
    clean = scanned(scan, batch, gamma, lam_actor, 1.0)
    for ours, expected in zip(scanned(scan, spoilt, gamma, lam_actor, 1.0), clean, strict=True):
        assert torch.equal(ours, expected)
        assert torch.count_nonzero(ours[mask == 0]) == 0


@SCANS
@settings(max_examples=30, deadline=None)
@given(batch=batches, lam_actor=unit, score_seed=st.integers(0, 100))
def test_gamma_and_lam_critic_1_give_monte_carlo_returns(
    scan: Scan, batch: Batch, lam_actor: float, score_seed: int
) -> None:
    _, values, mask = batch
    scores = torch.randn(len(values), generator=torch.Generator().manual_seed(score_seed))
    rewards = place_score_on_last_token(scores, mask)
    _, returns = scanned(scan, (rewards, values, mask), 1.0, lam_actor, 1.0)
    assert_close(returns, torch.where(mask != 0, scores[:, None], 0.0).double())


@SCANS
@settings(max_examples=30, deadline=None)
@given(batch=batches, gamma=unit, lam=unit)
def test_equal_lambdas_are_single_lambda_gae(scan: Scan, batch: Batch, gamma: float, lam: float) -> None:
    advantages, returns = scanned(scan, batch, gamma, lam, lam)
    selected = batch[2] != 0
    assert_close(returns[selected], (advantages.double() + batch[1].double())[selected])


@SCANS
@settings(max_examples=30, deadline=None)
@given(batch=batches, gamma=unit, lam_actor=unit, extra=st.integers(1, 40))
def test_the_width_of_the_batch_says_nothing_about_a_response(
    scan: Scan, batch: Batch, gamma: float, lam_actor: float, extra: int
) -> None:
    """A response that fills its row is treated as the same one with padding behind it."""
    width = batch[0].shape[1]
    wider = tuple(torch.nn.functional.pad(x, (0, extra)) for x in batch)
    narrow = scanned(scan, batch, gamma, lam_actor, 1.0)
    for ours, expected in zip(scanned(scan, wider, gamma, lam_actor, 1.0), narrow, strict=True):
        assert_close(ours[:, :width], expected.double())


@SCANS
def test_a_hole_counts_no_lambda_step(scan: Scan) -> None:
    whole = torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor([[0.1, 0.2, 0.3]]), torch.ones(1, 3).long()
    holed = tuple(torch.tensor([[x[0, 0], 77.0, x[0, 1], 77.0, 77.0, x[0, 2]]]) for x in whole[:2]) + (
        torch.tensor([[1, 0, 1, 0, 0, 1]]),
    )
    for ours, expected in zip(
        scanned(scan, holed, 0.9, 0.8, 0.7),
        scanned(scan, whole, 0.9, 0.8, 0.7),
        strict=True,
    ):
        assert_close(ours[:, [0, 2, 5]], expected.double())


@SCANS
@pytest.mark.parametrize("lam_actor", [0.95, 0.999])
def test_32k_tokens_stay_within_1e_5_of_float64(scan: Scan, lam_actor: float) -> None:
    rewards, values, _ = random_batch(1, 1, 32768)
    mask = (torch.rand(1, 32768, generator=torch.Generator().manual_seed(2)) > 0.05).long()
    batch = rewards, values, mask
    advantages, returns = scanned(scan, batch, 1.0, lam_actor, 1.0)
    assert_close(advantages, reference(*batch, 1.0, lam_actor)[0])
    assert_close(returns, reference(*batch, 1.0, 1.0)[1])


@SCANS
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 9, 10, 16, 17])
def test_every_way_that_blocks_can_divide_a_response(scan: Scan, width: int) -> None:
    rewards, values, _ = random_batch(width, 3, width)
    batch = rewards, values, torch.ones(3, width).long()
    assert_close(scanned(scan, batch, 0.9, 0.8, 1.0)[0], reference(*batch, 0.9, 0.8)[0])


# --- the public function


@pytest.mark.parametrize("mask_type", [torch.bool, torch.uint8, torch.int32, torch.int64, torch.float32])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_types_of_mask_and_values(mask_type: torch.dtype, dtype: torch.dtype) -> None:
    rewards, values, mask = random_batch(3, 4, 50)
    rewards, values = rewards.to(dtype), values.to(dtype)
    advantages, returns = decoupled_gae(rewards, values, mask.to(mask_type))
    assert advantages.dtype == returns.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert_close(advantages, reference(rewards, values, mask, 1.0, 0.95)[0])
    assert_close(returns, reference(rewards, values, mask, 1.0, 1.0)[1])


def test_views_and_tensors_with_gradient_are_read_and_left_as_they_are() -> None:
    rewards, values, mask = random_batch(4, 6, 40)
    before = values.clone()
    leaf = values.clone().requires_grad_()
    advantages, returns = decoupled_gae(rewards.T.contiguous().T, leaf, mask.T.contiguous().T)
    assert not advantages.requires_grad and not returns.requires_grad
    for ours, expected in zip((advantages, returns), decoupled_gae(rewards, values, mask), strict=True):
        assert torch.equal(ours, expected)
    assert torch.equal(values, before)


def test_a_lambda_a_response_equals_calls_one_by_one() -> None:
    rewards, values, mask = random_batch(5, 4, 30, holes=0.0)
    lams = torch.tensor([0.0, 0.5, 0.95, 1.0])
    together = decoupled_gae(rewards, values, mask, lam_actor=lams)[0]
    for row in range(3):  # the last row of a random batch is empty
        alone = decoupled_gae(
            rewards[row : row + 1], values[row : row + 1], mask[row : row + 1], lam_actor=lams[row].item()
        )[0]
        assert torch.equal(together[row : row + 1], alone)


def test_an_empty_response_gets_zeros_and_leaves_the_others_alone() -> None:
    rewards, values, mask = random_batch(6, 3, 20)
    advantages, returns = decoupled_gae(rewards, values, mask)
    assert torch.count_nonzero(advantages[-1]) == torch.count_nonzero(returns[-1]) == 0
    without = decoupled_gae(rewards[:-1], values[:-1], mask[:-1])
    assert torch.equal(advantages[:-1], without[0]) and torch.equal(returns[:-1], without[1])


@SCANS
def test_a_non_finite_value_of_a_trainable_token_shows_and_stays_in_its_row(scan: Scan) -> None:
    rewards, values, _ = random_batch(8, 3, 20)
    mask = torch.ones(3, 20).long()
    values[1, 7] = math.nan
    advantages, returns = scanned(scan, (rewards, values, mask), 1.0, 0.95, 1.0)
    assert advantages[1, 7].isnan() and returns[1, 7].isnan()
    assert torch.isfinite(advantages[[0, 2]]).all() and torch.isfinite(returns[[0, 2]]).all()


@pytest.mark.parametrize("name", ["gamma", "lam_actor", "lam_critic"])
@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, "0.9", None, True])
def test_coefficients_outside_0_to_1_are_refused_by_name_and_value(name: str, value: object) -> None:
    batch = random_batch(9, 2, 5)
    with pytest.raises(ConfigurationError, match=rf"{name} is {value!r}; allowed is a number in \[0, 1\]"):
        decoupled_gae(*batch, **{name: value})  # type: ignore[arg-type]


def test_a_lambda_tensor_must_fit_the_batch_and_lie_in_0_to_1() -> None:
    batch = random_batch(10, 2, 5)
    with pytest.raises(ConfigurationError, match=r"lam_actor has shape \[3\].*\[2\]"):
        decoupled_gae(*batch, lam_actor=torch.tensor([0.9, 0.9, 0.9]))
    for wrong in (1.5, -1.0, math.nan):
        with pytest.raises(ConfigurationError, match=r"lam_actor\[1\] is"):
            decoupled_gae(*batch, lam_actor=torch.tensor([0.9, wrong]))


@pytest.mark.parametrize(
    ("rewards", "values", "mask"),
    [
        ((2, 5), (2, 4), (2, 5)),
        ((2, 5), (2, 5), (3, 5)),
        ((5,), (5,), (5,)),
        ((2, 5, 1), (2, 5, 1), (2, 5, 1)),
    ],
)
def test_shapes_that_differ_are_refused_by_name(rewards: tuple, values: tuple, mask: tuple) -> None:
    with pytest.raises(DataError, match=rf"values {list(values)}".replace("[", r"\[")):
        decoupled_gae(torch.zeros(rewards), torch.zeros(values), torch.ones(mask))


def test_what_is_no_tensor_of_numbers_is_refused_by_name() -> None:
    ones = torch.ones(2, 3)
    with pytest.raises(DataError, match=r"token_level_rewards is a numpy\.ndarray; allowed"):
        decoupled_gae(ones.numpy(), ones, ones)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"values has dtype torch\.complex64"):
        decoupled_gae(ones, ones * 1j, ones)
    with pytest.raises(ConfigurationError, match=r"lam_actor has dtype torch\.bool"):
        decoupled_gae(ones, ones, ones, lam_actor=torch.tensor([True, False]))


def test_tensors_on_different_devices_are_refused() -> None:
    with pytest.raises(DataError, match="values on meta"):
        decoupled_gae(torch.zeros(1, 2), torch.zeros(1, 2, device="meta"), torch.ones(1, 2))


@pytest.mark.parametrize("shape", [(2, 5), (0, 5), (2, 0)])
def test_a_batch_without_a_trainable_token_is_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(DataError, match="selects no token"):
        decoupled_gae(torch.zeros(shape), torch.zeros(shape), torch.zeros(shape))
    zeros = torch.zeros(shape)
    assert blocked_gae(zeros, zeros, zeros, 1.0, torch.ones(shape[0]).double(), 1.0)[2] == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_gives_what_the_cpu_gives() -> None:
    batch = random_batch(12, 4, 1000)
    lams = torch.tensor([0.9, 0.95, 1.0, 0.0])
    on_gpu = decoupled_gae(*(x.cuda() for x in batch), lam_actor=lams)
    for ours, expected in zip(on_gpu, decoupled_gae(*batch, lam_actor=lams), strict=True):
        assert ours.is_cuda
        assert_close(ours.cpu(), expected.double())
