"""`python run_training.py FOLDER`: a short real training run in a process of its own, to be killed."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from training.ppo.launch import train
from training.ppo.verl_config import RunPaths
from vcppo.config import Config, load_profile, load_runtime
from vcppo.errors import VcppoError

FINGERPRINT = "0123456789abcdef"
NUM_STEPS = 4


def short_config() -> Config:
    """The tiny profile with small batches, a shuffled second epoch, and every schedule in use."""
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
    return Config.model_validate(values)


def make_inputs(folder: Path) -> None:
    """A random policy and 40 prompts: two and a half steps an epoch."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from training.models import build_initial_policy, save_policy

    model, tokenizer = build_initial_policy(short_config().model, seed=1)
    save_policy(model, tokenizer, folder / "policy")
    rng = random.Random(0)
    rows = [
        {
            "data_source": "sums",
            "prompt": [{"role": "user", "content": " ".join(str(rng.randint(0, 9)) for _ in range(8))}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": str(i % 10)},
            "extra_info": {"id": f"sums/{i}", "split": "train", "index": i, "grader": "aime"},
        }
        for i in range(40)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "train.parquet")


def main(inputs: Path, work: Path) -> int:
    paths = RunPaths(inputs / "policy", None, inputs / "train.parquet", work)
    try:
        result = train(short_config(), load_runtime(), paths, FINGERPRINT)
    except VcppoError as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return error.exit_code
    print(f"DONE resumed from {result.resumed_from}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
