"""`python run_training.py INPUTS WORK [SCENARIO]`: a short real training run in a process of its own."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from training.ppo.launch import train
from training.ppo.verl_config import RunPaths
from vcppo.config import Config, load_profile, load_runtime
from vcppo.errors import VcppoError

ROOT = Path(__file__).resolve().parents[3]
FINGERPRINT = "0123456789abcdef"
NUM_STEPS = 4


def short_config(scenario: str = "resume") -> Config:
    """The tiny profile with small batches.

    resume: a shuffled second epoch, and every schedule in use. diverge: a critic whose learning rate, 0 in
    the first step of its warm-up, then leaves float32. vapo: all of VAPO's ingredients and the reference
    model; one checkpoint is kept, and any update of the policy, which begin with step 2, is too much for the
    guard on KL.
    """
    values = load_profile("tiny").model_dump()
    values["data"] |= {"max_response_tokens": 24}
    values["train"] |= {
        "num_steps": NUM_STEPS,
        "prompts_per_step": 16,
        "samples_per_prompt": 2,
        "save_every_steps": 1,
        "keep_checkpoints": 9,
        "critic_start": "sft",
    }
    for side in ("actor", "critic"):
        values["train"][side] |= {"mini_batch_size": 16}
        values["train"][side]["optimizer"] |= {"learning_rate": 1e-3, "warmup_steps": 2}
    values["train"]["critic"] |= {"epochs": 2, "warmup_steps": 1}
    if scenario == "diverge":
        values["train"]["critic"]["optimizer"] |= {"learning_rate": 1e38}
    if scenario == "vapo":
        values["train"] |= {"algorithm": "vapo", "keep_checkpoints": 1}
        values["train"]["guards"] |= {"max_kl": 1e-9, "runaway_steps": 2}
        values["train"]["gae"] |= {"lam_actor": "length_adaptive", "fallback": {"steps": 1}}
        values["train"]["actor"] |= {
            "clip_ratio_high": 0.28,
            "language_model_loss_coefficient": 0.1,
            "kl_coefficient": 0.001,
        }
    return Config.model_validate(values)


def make_inputs(folder: Path, taught: bool = False) -> None:
    """A policy and 40 prompts: two and a half steps an epoch.

    taught: the policy answers 0 or 1 at once instead of rambling, and 1 is always right.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from training.models import build_initial_policy, save_policy

    model, tokenizer = build_initial_policy(short_config().model, seed=1)
    if taught:
        _teach(model, tokenizer)
    save_policy(model, tokenizer, folder / "policy")
    rng = random.Random(0)
    rows = [
        {
            "data_source": "sums",
            "prompt": [{"role": "user", "content": " ".join(str(rng.randint(0, 9)) for _ in range(8))}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": "1" if taught else str(i % 10)},
            "extra_info": {"id": f"sums/{i}", "split": "train", "index": i, "grader": "aime"},
        }
        for i in range(40)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "train.parquet")


def _teach(model: Any, tokenizer: Any) -> None:
    import torch

    answers = [f"\\boxed{{{digit}}}" for digit in "01"]
    texts = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": "1 2 3"}, {"role": "assistant", "content": answer}], tokenize=False
        )
        for answer in answers
    ]
    ids = torch.tensor([tokenizer.encode(text, add_special_tokens=False) for text in texts])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(80):
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()


def start(command: list[str], cwd: Path, output: Path, **environment: str) -> subprocess.Popen[Any]:
    """Start Python with `command` in a process group of its own; what it prints goes to `output`."""
    return subprocess.Popen(
        [sys.executable, *command],
        stdout=output.open("w"),
        stderr=subprocess.STDOUT,
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT),
            "VCPPO_WANDB_MODE": "disabled",
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
        }
        | environment,
        cwd=cwd,
        start_new_session=True,
    )


def start_training(
    inputs: Path, work: Path, output: Path, scenario: str = "resume", **environment: str
) -> subprocess.Popen[Any]:
    """Start this file."""
    return start([str(Path(__file__)), str(inputs), str(work), scenario], work, output, **environment)


def main(inputs: Path, work: Path, scenario: str) -> int:
    paths = RunPaths(inputs / "policy", None, inputs / "train.parquet", work)
    try:
        result = train(short_config(scenario), load_runtime(), paths, FINGERPRINT)
    except VcppoError as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return error.exit_code
    print(f"DONE resumed from {result.resumed_from}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), *(sys.argv[3:] or ["resume"])))
