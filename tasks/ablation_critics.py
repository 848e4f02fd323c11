"""Stage ablation_critics: the value pretrainings that the rows of a study start from (VC-PPO, 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.ablation.plan import CRITICS, share_name
from tasks.pretrain_critic import pretrain
from tasks.stage import StageContext
from vcppo.config import study_of
from vcppo.files import publish, write_json_atomic

MEASURES = ("explained_variance", "value_bias", "value_loss", "by_position")
SUMMARY = "critics.json"


def run(context: StageContext) -> Mapping[str, Any]:
    """A critic for each length of pretraining; no gate: what a poor one does is what the study shows.

    Raises ConfigurationError (the profile has no study), and what value pretraining raises.
    """
    from training.finetune.rollouts import load_rollouts

    shares = sorted(set(study_of(context.config).pretraining_shares))
    rollouts, _ = load_rollouts(Path("data/rollouts"))
    critics = []
    for share in shares:
        section = context.config.pretrain_critic
        section = section.model_copy(update={"max_epochs": section.max_epochs * share})
        context.say(f"value pretraining x {share:g}: {section.max_epochs:g} epochs")
        folder = (context.work / share_name(share)).resolve()
        curve, measured = pretrain(context, section, rollouts, folder)
        measures = {name: measured[name] for name in MEASURES}
        critics.append(
            {"pretraining_share": share, "num_steps": curve[-1]["step"], **measures, "curve": curve}
        )
        publish(folder / "model", context.out(str(CRITICS)) / share_name(share), link=True)
    write_json_atomic(context.out(str(CRITICS)) / SUMMARY, critics)
    return {
        share_name(critic["pretraining_share"]): {
            name: critic[name] for name in ("num_steps", "explained_variance", "value_bias")
        }
        for critic in critics
    }
