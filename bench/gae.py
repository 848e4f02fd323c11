"""Decoupled GAE against verl's function called for both lambdas, and against the memory that it has to move.

    python -m bench.gae

One run, one thread, float32 with an int64 mask (as verl makes it), the best of several repetitions each. The
bytes are those of rewards, values and mask, read once, and of two outputs, written once; the limit is the
time they take at the copy bandwidth of the same run. Our inputs rotate through more memory than a cache
holds, as those of a real step would come. With a CUDA device the same table follows for it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from training.algorithms import decoupled_gae

GAMMA, LAM_ACTOR, LAM_CRITIC = 1.0, 0.95, 1.0
SHAPES_AND_TARGETS = {(64, 2048): 500, (64, 8192): 500, (16, 32768): 2000}  # (batch, response): times verl
TARGET_TIMES_LIMIT = 10.0
BEYOND_CACHES = 256 * 2**20  # bytes


def main() -> dict[str, Any]:
    """Measure and print the tables; returns {device: {"copy_gb_per_second": ..., "rows": [...]}}."""
    print("importing verl (half a minute) ...", flush=True)
    from verl.trainer.ppo.core_algos import compute_gae_advantage_return

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
        return {device: _table(torch.device(device), compute_gae_advantage_return) for device in devices}
    finally:
        torch.set_num_threads(threads)


def _table(device: torch.device, verl_gae: Callable[..., tuple[Tensor, Tensor]]) -> dict[str, Any]:
    bandwidth = _copy_bytes_per_second(device)
    print(
        f"\nDecoupled GAE on {device}, one thread; copy bandwidth {bandwidth / 1e9:.1f} GB/s (read + written)"
    )
    header = ("B", "T", "verl ms", "ours ms", "faster", "target", "limit ms", "x limit", "target")
    layout = "{:>4} {:>6} {:>9} {:>8} {:>8} {:>7} {:>9} {:>8} {:>7}  {}"
    print(layout.format(*header, ""))
    rows = []
    for (batch_size, width), target in SHAPES_AND_TARGETS.items():
        row = _row(device, verl_gae, bandwidth, batch_size, width)
        row["reached"] = row["times_verl"] >= target and row["times_limit"] <= TARGET_TIMES_LIMIT
        rows.append(row)
        print(
            layout.format(
                batch_size,
                width,
                f"{row['verl_seconds'] * 1e3:.1f}",
                f"{row['ours_seconds'] * 1e3:.3f}",
                f"{row['times_verl']:.0f}x",
                f">={target}x",
                f"{row['limit_seconds'] * 1e3:.3f}",
                f"{row['times_limit']:.1f}x",
                f"<={TARGET_TIMES_LIMIT:.0f}x",
                "reached" if row["reached"] else "MISSED",
            ),
            flush=True,
        )
    return {"copy_gb_per_second": bandwidth / 1e9, "rows": rows}


def _row(
    device: torch.device,
    verl_gae: Callable[..., tuple[Tensor, Tensor]],
    bandwidth: float,
    batch_size: int,
    width: int,
) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(batch_size, width, generator=generator).to(device)
    # Full rows: padding would be skipped, and the bytes that we count not all be read.
    mask = torch.ones(batch_size, width, dtype=torch.int64, device=device)
    rewards = torch.zeros_like(values)
    rewards[:, -1] = 1.0

    # Read rewards, values and mask; write two outputs, each as large as one of the first two.
    moved = 2 * (rewards.nbytes + values.nbytes) + mask.nbytes
    num_copies = -(-BEYOND_CACHES // moved)
    inputs = itertools.cycle([[x.clone() for x in (rewards, values, mask)] for _ in range(num_copies)])

    def ours() -> None:
        decoupled_gae(*next(inputs), gamma=GAMMA, lam_actor=LAM_ACTOR, lam_critic=LAM_CRITIC)

    def verl_twice() -> None:
        for lam in (LAM_ACTOR, LAM_CRITIC):
            verl_gae(rewards, values, mask, GAMMA, lam)

    ours_seconds = _best_seconds(ours, device, repetitions=50)
    verl_seconds = _best_seconds(verl_twice, device, repetitions=3)
    limit_seconds = moved / bandwidth
    return {
        "batch": batch_size,
        "response": width,
        "verl_seconds": verl_seconds,
        "ours_seconds": ours_seconds,
        "limit_seconds": limit_seconds,
        "times_verl": verl_seconds / ours_seconds,
        "times_limit": ours_seconds / limit_seconds,
    }


def _copy_bytes_per_second(device: torch.device) -> float:
    source = torch.ones(BEYOND_CACHES // 4, device=device)
    target = torch.empty_like(source)
    seconds = _best_seconds(lambda: target.copy_(source), device, repetitions=10)
    return 2 * source.nbytes / seconds


def _best_seconds(call: Callable[[], object], device: torch.device, *, repetitions: int) -> float:
    """The fastest of `repetitions` calls, after one that compiles and warms up."""
    finish = torch.cuda.synchronize if device.type == "cuda" else _nothing_to_wait_for
    best = float("inf")
    for repetition in range(repetitions + 1):
        finish()
        started = time.perf_counter()
        call()
        finish()
        if repetition:
            best = min(best, time.perf_counter() - started)
    return best


def _nothing_to_wait_for() -> None:
    """A CPU call has finished when it returns."""


if __name__ == "__main__":
    main()
