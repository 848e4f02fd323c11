"""How far the numbers of a study carry: what was varied, what was not, what the paper's figures are."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.ablation.results import Study
from vcppo.config import Config
from vcppo.config.ablation import row_config


def notes(study: Study, config: Config) -> list[str]:
    """Paragraphs of plain text."""
    return list(_notes(study, config))


def _notes(study: Study, config: Config) -> Iterator[str]:
    assert config.ablation is not None
    base = study.base
    yield from config.ablation.notes
    yield (
        "There is one SFT policy, and one critic per length of the value pretraining. Seeds are seeds of the "
        "reinforcement learning alone (which prompts, which samples), so the intervals say how a row varies "
        "from run to run from this start, and nothing about other starts, tasks or models."
    )
    yield (
        "\N{PLUS-MINUS SIGN} and bands are half of the 95 % t-interval of the mean over the runs of a row; "
        "the interval of the SFT policy is over problems. Comparisons are paired by seed: seed i is the same "
        "number in every row. Their intervals are not corrected for how many comparisons there are."
    )
    if "num_problems" in base and "samples_per_problem" in base:
        yield (
            f"Held-out accuracy is over {base['num_problems']} problems, {base['samples_per_problem']} "
            "samples each, the same ones for all runs; training accuracy is that of the responses sampled "
            "for a step, before its update."
        )
    if any(run.stopped for run in study.runs):
        yield (
            "A run that a guard stopped counts with the held-out figures of its last good checkpoint, or, "
            "without one, not at all in them; curves go on with the runs that are left."
        )
    trains = [row_config(config, row, 0).train for row in config.ablation.rows]
    if any(train.algorithm != "grpo" and train.gae.lam_critic < 1 for train in trains):
        yield (
            "Value bias and explained variance compare values with the returns that the critic learns from. "
            "With lam_critic below 1 these hold the critic's later values, so its bias looks smaller than "
            "against the rewards; a row of the same critic with lam_critic 1 shows all of it."
        )
    if any(row.pretraining_share == 0 for row in config.ablation.rows):
        yield (
            f"A row without value pretraining starts with the critic that the pretraining starts from: "
            f"{_START[config.pretrain_critic.start_from]}"
        )
    yield (
        "With the same workers and threads on the same kind of CPU a run is a function of its configuration "
        "and seed. Elsewhere last digits, and with them single samples, can differ, as between seeds; "
        "times belong to the machine."
    )
    if any(row.paper is not None for row in config.ablation.rows):
        yield (
            "The paper's figures (arXiv 2503.01491) are AIME 2024 pass@1 of a 32B model with responses of up "
            "to 8K tokens. Only the order of the rows can be compared with ours, neither the level nor the "
            "size of a difference. The paper gives one figure a row, without an interval. Its row without "
            "decoupled GAE is its lambda_actor 1.0, its VC-PPO row equals lambda_actor 0.99 (0.95 gave "
            "41.3), and the best of its pretraining sweep lies below its VC-PPO row."
        )


_START = {
    "reward_model": "the reward model, as in the paper.",
    "sft": "the SFT policy with a fresh value head, not a reward model as in the paper.",
}
