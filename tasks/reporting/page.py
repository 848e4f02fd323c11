"""The page: everything computed, handed to the templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.reporting import curves, evaluation, provenance
from tasks.reporting.inputs import POLICIES, Results
from tasks.reporting.numbers import byte_size, duration, figure, moment, signed
from vcppo.config import Config, dump_yaml

TEMPLATES = Path(__file__).parent / "templates"
ALGORITHMS = {"vc_ppo": "VC-PPO", "ppo": "PPO", "vapo": "VAPO", "grpo": "GRPO"}
_CONTROL = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"} | {
    0x7F: 0x2421,
    **{code: 0xFFFD for code in range(0xD800, 0xE000)},
}
"""Characters that HTML or UTF-8 refuses, as characters that show them."""


def render(results: Results, config: Config, mismatches: Sequence[str] = ()) -> str:
    """The page as HTML, a function of its arguments.

    mismatches: sentences of `vcppo.lineage` on records and files that do not fit together.
    """
    return fill("page.html.j2", values(results, config, mismatches))


def fill(template: str, values: Mapping[str, Any]) -> str:
    """A template of this package with its values; text in them stays text, whatever it holds."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=printable,
    )
    environment.filters |= {"figure": figure, "byte_size": byte_size, "coordinate": "{:.1f}".format}
    return environment.get_template(template).render(values)


def printable(value: Any) -> Any:
    """A value of the templates as it is written: control characters as their pictures."""
    return value.translate(_CONTROL) if type(value) is str else value


def values(results: Results, config: Config, mismatches: Sequence[str]) -> dict[str, Any]:
    """Everything that the templates name."""
    records = results.records
    evaluated = records.get("evaluate")
    return {
        "profile": config.profile,
        "trained": trained(config),
        "evaluated": moment(evaluated.finished) if evaluated else None,
        "headlines": evaluation.headlines(results.evaluation),
        "intervals": evaluation.interval_plot(results.evaluation),
        "table": evaluation.evaluation_table(results.evaluation),
        "settings": evaluation.settings_table(results.evaluation),
        "promotion": evaluation.promotion(results.evaluation),
        "statuses": evaluation.status_table(results.samples),
        "policy_names": evaluation.NAMES,
        "summary": summary(results.metrics["train"]),
        "training": curves.panel(curves.TRAINING, results.plots.get("train"), "train", "training step"),
        "positions": curves.value_by_position(results),
        "pretraining": curves.panel(
            curves.PRETRAINING, results.plots.get("pretrain_critic"), "pretrain", "update"
        ),
        "guards": guard_sentences(results.metrics["train"]),
        "gate": gate(results.metrics["pretrain_critic"]),
        "groups": calibration_groups(results.metrics["pretrain_critic"]),
        "sft": curves.panel(curves.SFT, results.plots.get("sft"), "sft", "update"),
        "samples": {
            evaluation.NAMES[policy]: results.samples[policy].displayed(results.prompts)
            for policy in POLICIES
        },
        "sources": results.card.get("sources", []),
        "files": results.card.get("files", {}),
        "stage_metrics": {
            name: provenance.flat(metrics) for name, metrics in results.metrics.items() if metrics
        },
        "configuration": dump_yaml(config),
        "stages": provenance.stage_rows(records),
        "total_duration": provenance.total_duration(records),
        "code": provenance.code_states(records),
        "outputs": provenance.outputs(records),
        "versions": provenance.versions(records),
        "mismatches": mismatches,
    }


def trained(config: Config) -> str:
    """What was trained, in a sentence."""
    train = config.train
    samples_each = (
        f" \N{MULTIPLICATION SIGN} {train.samples_per_prompt} samples" if train.samples_per_prompt > 1 else ""
    )
    critic = {
        "value_pretrained": "the critic pretrained on Monte-Carlo returns",
        "sft": "the critic started from the SFT policy",
        "reward_model": "the critic started from a reward model",
    }[train.critic_start]
    if train.algorithm == "grpo":
        how = "without a critic"
    else:
        how = f"{critic}, lam_actor {train.gae.lam_actor}, lam_critic {train.gae.lam_critic}"
    return (
        f"{ALGORITHMS[train.algorithm]} on a {config.model.kind} model, seed {config.seed}: "
        f"{train.num_steps} steps of {train.prompts_per_step} prompts{samples_each}, {how}."
    )


def summary(metrics: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The training in a few figures, (name, figure); empty without its metrics."""
    if not metrics:
        return []
    rows = [("steps", figure(metrics["num_steps"]))]
    units = {"accuracy": "", "response_length": " tokens", "value_bias": "", "explained_variance": ""}
    for name, unit in units.items():
        ends = metrics.get(name, {})
        if ends.get("first") is not None or ends.get("last") is not None:
            label = f"{name.replace('_', ' ')}, first to last step"
            rows.append((label, f"{figure(ends['first'])} \N{RIGHTWARDS ARROW} {figure(ends['last'])}{unit}"))
    rows.append(("time per step", duration(metrics["seconds_per_step"])))
    rows.append(("tokens, prompts included", figure(metrics["tokens"])))
    return rows


def guard_sentences(metrics: Mapping[str, Any]) -> list[str]:
    """What guards that only warn, or whose row was still too short, had to say."""
    sentences = []
    for name, seen in metrics.get("guards", {}).items():
        if steps := seen.get("acted_at"):
            sentences.append(f"Guard {name} warned at step {', '.join(map(str, steps))}.")
        if since := seen.get("outside_since"):
            sentences.append(f"Guard {name}: outside its limit from step {since} to the end.")
    return sentences


def calibration_groups(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Calibration of the pretrained critic by outcome and by length of the response, held-out prompts."""
    groups = [
        (f"{name} responses", group)
        for name, group in metrics.get("by_correctness", {}).items()
        if group is not None
    ]
    for group in metrics.get("by_length", []):
        shortest, longest = group["shortest"], group["longest"]
        ends = figure(shortest) if shortest == longest else f"{figure(shortest)} to {figure(longest)}"
        groups.append((f"{ends} tokens", group))
    return [
        {
            "label": label,
            "cells": [
                figure(group["num_rollouts"]), figure(group["value"]), figure(group["return"]),
                signed(group["value_bias"]),
            ],
        }
        for label, group in groups
    ]  # fmt: skip


def gate(metrics: Mapping[str, Any]) -> str | None:
    """Whether the pretrained critic passed its gate, in a sentence; None when there was none."""
    passed = metrics.get("gate_passed")
    if passed is None:
        return None
    if passed:
        return "The critic passed its gate."
    return f"The critic did not pass its gate: {'; '.join(metrics.get('gate_reasons', []))}."
