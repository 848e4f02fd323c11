"""One PPO step on verl beside a bare torch loop of the same model and batch, by phase.

    python -m bench.training_step

128 responses of 64 tokens, a policy and a critic of about 0.1 M parameters, one thread, one worker. The bare
loop does the arithmetic of a step and nothing else: generation, values, advantages, one update of each
network. Both are measured in this run; the ratio is what Ray, verl and the TransferQueue cost. Median over
the steps after the first.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

BATCH, RESPONSE_TOKENS, PROMPT_DIGITS, NUM_STEPS = 128, 64, 20, 8
PHASES = ("gen", "old_log_prob", "values", "adv", "update_critic", "update_actor")
TARGET_STEP_SECONDS, TARGET_START_SECONDS = 3.0, 50.0


def main() -> dict[str, Any]:
    """Measure and print both; returns seconds by phase, their ratio, and the seconds until step 1 ended."""
    with tempfile.TemporaryDirectory() as folder:
        config = _config()
        _make_inputs(config, Path(folder))
        ours, start_seconds = _measure_verl(config, Path(folder))
        bare = _measure_bare(config, Path(folder))
    _print_table(ours, bare, start_seconds)
    ratio = sum(ours.values()) / sum(bare.values())
    return {"verl": ours, "bare": bare, "ratio": ratio, "start_seconds": start_seconds}


def _config() -> Any:
    from vcppo.config import Config, load_profile

    values = load_profile("tiny").model_dump()
    values["model"] = {"kind": "tiny"}
    values["data"] |= {"max_response_tokens": RESPONSE_TOKENS, "max_prompt_tokens": 64}
    values["train"] |= {
        "num_steps": NUM_STEPS,
        "prompts_per_step": BATCH,
        "samples_per_prompt": 1,
        "critic_start": "sft",
        "save_every_steps": NUM_STEPS,
        # greedy, from random weights: no response ends before the limit, so all have 64 tokens
        "sampling": {"top_k": 1},
        # greedy samples have probability 1 for the sampler and not for the trainer: that is no run-away KL
        "guards": {"action": "warn"},
    }
    for side in ("actor", "critic"):
        values["train"][side] |= {"mini_batch_size": BATCH}
    return Config.model_validate(values)


def _make_inputs(config: Any, folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from training.models import build_initial_policy, save_policy

    model, tokenizer = build_initial_policy(config.model, seed=1)
    print(f"policy: {sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    save_policy(model, tokenizer, folder / "policy")
    rng = random.Random(0)
    rows = [
        {
            "data_source": "bench",
            "prompt": [{"role": "user", "content": "".join(rng.choices("01234", k=PROMPT_DIGITS))}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": "1"},
            "extra_info": {"id": f"bench/{i}", "split": "train", "index": i, "grader": "aime"},
        }
        for i in range(2 * BATCH)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "train.parquet")


def _measure_verl(config: Any, folder: Path) -> tuple[dict[str, float], float]:
    from training.ppo.launch import train
    from training.ppo.metrics_log import read_metrics
    from training.ppo.verl_config import RunPaths
    from vcppo.config import Runtime

    work = folder / "work"
    work.mkdir()
    paths = RunPaths(folder / "policy", None, folder / "train.parquet", work)
    runtime = Runtime(
        wandb_mode="disabled", micro_batch_size=BATCH, micro_batch_tokens=1 << 20, rollout_batch_size=BATCH
    )
    first_rollouts, started = work / "rollouts" / "1.jsonl", time.time()
    train(config, runtime, paths, "benchmark")
    steps = read_metrics(paths.metrics)[1:]
    lengths = {step["response/length"] for step in steps}
    print(f"mean response length of each step: {sorted(lengths)}", flush=True)
    phases = {
        phase: statistics.median(step.get(f"timing_s/{phase}", 0.0) for step in steps) for phase in PHASES
    }
    whole = statistics.median(step["timing_s/step"] for step in steps)
    phases["rest"] = max(0.0, whole - sum(phases.values()))
    return phases, first_rollouts.stat().st_mtime - started


def _measure_bare(config: Any, folder: Path) -> dict[str, float]:
    """The same arithmetic without verl: float32, one thread, AdamW, clipped surrogate, plain value loss."""
    import torch
    import torch.nn.functional as F
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from training.algorithms import decoupled_gae, place_score_on_last_token, whiten
    from training.generation.prompts import encode_prompt, read_problems
    from training.generation.sampler import TorchSampler
    from training.models import new_value_model
    from vcppo.config.base import SamplingConfig

    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(folder / "policy")
    policy: Any = AutoModelForCausalLM.from_pretrained(folder / "policy", attn_implementation="sdpa")
    critic: Any = new_value_model(folder / "policy", seed=1)
    sampler = TorchSampler(policy, 0, {tokenizer.eos_token_id}, seed=1)
    likeliest = SamplingConfig(top_k=1)
    problems = read_problems(folder / "train.parquet")[:BATCH]
    prompts = [encode_prompt(tokenizer, p.messages, 64) for p in problems]
    width = len(prompts[0])  # every prompt has the same number of digits
    optimizers = [torch.optim.AdamW(model.parameters(), lr=1e-4) for model in (policy, critic)]
    seconds: dict[str, list[float]] = {phase: [] for phase in PHASES}

    def timed(phase: str, work: Callable[[], Any]) -> Any:
        begun = time.perf_counter()
        result = work()
        seconds[phase].append(time.perf_counter() - begun)
        return result

    def response_part(output: Any) -> Any:
        return output.logits[:, width - 1 : -1]

    for step in range(NUM_STEPS):
        keys = [f"{step}/{p.id}" for p in problems]
        drawn = timed("gen", partial(sampler.generate, prompts, keys, RESPONSE_TOKENS, likeliest))
        ids = torch.cat([torch.tensor(prompts), drawn.tokens], 1).clone()
        mask = torch.arange(RESPONSE_TOKENS)[None] < drawn.lengths[:, None]
        rewards = place_score_on_last_token(torch.full((BATCH,), -1.0), mask)
        old, tokens = drawn.log_probs.clone(), drawn.tokens.clone()

        def values(ids: Any = ids) -> Any:
            with torch.no_grad():
                return response_part(critic(input_ids=ids)).squeeze(-1)

        old_values = timed("values", values)

        def advantages(old_values: Any = old_values, rewards: Any = rewards, mask: Any = mask) -> Any:
            raw, returns = decoupled_gae(rewards, old_values, mask, lam_actor=0.95, lam_critic=1.0)
            return whiten(raw, mask), returns

        gains, returns = timed("adv", advantages)

        def update_critic(ids: Any = ids, returns: Any = returns, mask: Any = mask) -> None:
            predicted = response_part(critic(input_ids=ids)).squeeze(-1)
            loss = (0.5 * (predicted - returns) ** 2)[mask].mean()
            _apply(loss, critic, optimizers[1])

        def update_actor(
            ids: Any = ids, tokens: Any = tokens, old: Any = old, gains: Any = gains, mask: Any = mask
        ) -> None:
            logits = response_part(policy(input_ids=ids))
            log_probs = -F.cross_entropy(logits.flatten(0, 1), tokens.flatten(), reduction="none").view_as(
                old
            )
            ratio = (log_probs - old).exp()
            loss = -torch.min(ratio * gains, ratio.clamp(0.8, 1.2) * gains)[mask].mean()
            _apply(loss, policy, optimizers[0])
            sampler.refresh()

        timed("update_critic", update_critic)
        timed("update_actor", update_actor)
    medians = {phase: statistics.median(times[1:]) if times else 0.0 for phase, times in seconds.items()}
    return {**medians, "rest": 0.0}


def _apply(loss: Any, model: Any, optimizer: Any) -> None:
    import torch

    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def _print_table(ours: dict[str, float], bare: dict[str, float], start_seconds: float) -> None:
    print(f"\n{BATCH} responses of {RESPONSE_TOKENS} tokens, median of {NUM_STEPS - 1} steps, seconds")
    print(f"{'phase':<16}{'verl':>10}{'bare torch':>14}")
    for phase in ours:
        print(f"{phase:<16}{ours[phase]:>10.3f}{bare[phase]:>14.3f}")
    whole, least = sum(ours.values()), sum(bare.values())
    print(f"{'step':<16}{whole:>10.3f}{least:>14.3f}   ratio {whole / least:.2f}")
    print(f"a step at most {TARGET_STEP_SECONDS} s: {'yes' if whole <= TARGET_STEP_SECONDS else 'NO'}")
    reached = "yes" if start_seconds <= TARGET_START_SECONDS else "NO"
    print(
        f"start until the end of step 1: {start_seconds:.1f} s, at most {TARGET_START_SECONDS:.0f}: {reached}"
    )


if __name__ == "__main__":
    main()
