"""verl's agent loop for single-turn problems: the whole batch tokenised, generated, scored and stored at
once.

Runs inside the runner's process (`rollout.agent.agent_loop_manager_class`): no agent-loop worker, reward
worker or load
balancer, whose per-sample calls cost more than the model on a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import ray
import torch
import transfer_queue as tq
from tensordict import NonTensorData, NonTensorStack, TensorDict
from verl.utils import hf_tokenizer

from training.algorithms import place_score_on_last_token
from training.generation.prompts import encode_prompt
from training.generation.scoring import Scored, score_responses
from training.ppo.rollout_server import GeneratedBatch, sampling_config, server_name
from vcppo.config.base import SamplingConfig
from vcppo.config.stages import RewardConfig


class BatchAgentLoopManager:
    """What verl asks of an agent loop manager: `create` and `generate_sequences`."""

    def __init__(self, config: Any) -> None:
        self.config = config
        self.rollout = config.actor_rollout_ref.rollout
        self.tokenizer = hf_tokenizer(config.actor_rollout_ref.model.path, trust_remote_code=False)
        self.reward = RewardConfig(**config.vcppo.reward)
        parallel = (
            self.rollout.tensor_model_parallel_size
            * self.rollout.data_parallel_size
            * self.rollout.pipeline_model_parallel_size
        )
        num_servers = config.trainer.n_gpus_per_node * config.trainer.nnodes // parallel
        self.servers = [ray.get_actor(server_name(i)) for i in range(num_servers)]

    @classmethod
    def create(cls, config: Any, **_: Any) -> BatchAgentLoopManager:
        return cls(config)

    def generate_sequences(self, prompts: TensorDict) -> None:
        """Blocks until every trajectory of the batch is in the TransferQueue and its prompt is marked
        finished."""
        column = {
            name: _column(prompts, name) for name in ("uid", "raw_prompt", "reward_model", "extra_info")
        }
        sources = _column(prompts, "data_source")
        validating = "validate" in prompts.keys() and bool(_column(prompts, "validate")[0])  # noqa: SIM118
        step = int(_column(prompts, "global_steps")[0])
        num_samples, sampling = self._sampling(validating)

        # one entry a (prompt, sample): the key names its noise and its place in the batch
        owners = [i for i in range(len(prompts)) for _ in range(num_samples)]
        samples = [s for _ in range(len(prompts)) for s in range(num_samples)]
        uids = column["uid"]
        phase = f"val/{step}" if validating else f"train/{step}"
        problem_ids = [dict(info)["id"] for info in column["extra_info"]]
        keys = [f"{uids[i]}_{s}_0" for i, s in zip(owners, samples, strict=True)]
        # the uid tells a prompt that comes twice in a step apart from itself
        noise = [
            f"{phase}/{'' if validating else uids[i]}/{problem_ids[i]}/{s}"
            for i, s in zip(owners, samples, strict=True)
        ]
        encoded = [
            encode_prompt(self.tokenizer, tuple(messages), self.rollout.prompt_length)
            for messages in column["raw_prompt"]
        ]
        drawn = self._generate([encoded[i] for i in owners], noise, sampling)
        texts = self.tokenizer.batch_decode(_split(drawn), skip_special_tokens=True)
        finish = ["stop" if stopped else "length" for stopped in drawn.stopped]
        golds = [column["reward_model"][i]["ground_truth"] for i in owners]
        graders = [dict(column["extra_info"][i])["grader"] for i in owners]
        scored = score_responses(list(zip(texts, golds, graders, finish, strict=True)), self.reward)

        lengths = torch.tensor(drawn.lengths)
        fields = _trajectory_fields([encoded[i] for i in owners], drawn, lengths, scored)
        version = drawn.policy_version
        fields |= {
            "uid": NonTensorStack(*[uids[i] for i in owners]),
            "reward_model": NonTensorStack(*[column["reward_model"][i] for i in owners]),
            "data_source": NonTensorStack(*[sources[i] for i in owners]),
            "extra_fields": NonTensorStack(
                *[
                    {
                        "reward_extra_info": {
                            "score": s.score,
                            "acc": float(s.status == "right"),
                            "status": s.status,
                            "finish_reason": reason,
                            "id": problem_ids[i],
                        },
                        "min_global_steps": version,
                        "max_global_steps": version,
                    }
                    for i, s, reason in zip(owners, scored, finish, strict=True)
                ]
            ),
        }
        tags = [
            {
                "status": "success",
                "prompt_len": len(encoded[i]),
                "response_len": n,
                "seq_len": len(encoded[i]) + n,
                "global_steps": step,
                "min_global_steps": version,
                "max_global_steps": version,
            }
            for i, n in zip(owners, drawn.lengths, strict=True)
        ]
        partition = "val" if validating else "train"
        tq.kv_batch_put(
            keys=keys, partition_id=partition, fields=TensorDict(fields, batch_size=len(keys)), tags=tags
        )
        tq.kv_batch_put(keys=uids, partition_id=partition, tags=[{"status": "finished"}] * len(uids))

    def _sampling(self, validating: bool) -> tuple[int, SamplingConfig]:
        """Samples a prompt, and how each is drawn."""
        source = self.rollout.val_kwargs if validating else self.rollout
        greedy = validating and not source.get("do_sample", False)
        return int(source.n), SamplingConfig(temperature=0.0) if greedy else sampling_config(source)

    def _generate(
        self, prompts: list[list[int]], keys: list[str], sampling: SamplingConfig
    ) -> GeneratedBatch:
        """One call a server, equal contiguous shares, so that the share does not depend on who is free."""
        cuts = np.linspace(0, len(prompts), len(self.servers) + 1).astype(int)
        parts: list[GeneratedBatch] = ray.get(
            [
                server.generate_batch.remote(
                    prompts[a:b],
                    keys[a:b],
                    int(self.rollout.response_length),
                    sampling,
                )
                for server, a, b in zip(self.servers, cuts, cuts[1:], strict=False)
                if b > a
            ]
        )
        versions = {part.policy_version for part in parts}
        if len(versions) != 1:
            raise RuntimeError(
                f"rollout servers hold different policy versions: {sorted(map(str, versions))}"
            )
        return GeneratedBatch(
            np.concatenate([p.tokens for p in parts]),
            np.concatenate([p.log_probs for p in parts]),
            [n for p in parts for n in p.lengths],
            [s for p in parts for s in p.stopped],
            versions.pop(),
        )


def _trajectory_fields(
    prompts: Sequence[list[int]], drawn: GeneratedBatch, lengths: torch.Tensor, scored: Sequence[Scored]
) -> dict[str, Any]:
    """The tensor columns of verl's trajectory schema, as nested (jagged) tensors of `[B, own length]`."""
    prompt_lengths = torch.tensor([len(p) for p in prompts])
    totals = prompt_lengths + lengths
    tokens = torch.from_numpy(drawn.tokens).long()
    prompt_tensors = [torch.tensor(p) for p in prompts]
    responses = tokens.split(drawn.lengths)
    full = torch.cat([part for pair in zip(prompt_tensors, responses, strict=True) for part in pair])
    positions = torch.arange(len(full)) - torch.repeat_interleave(totals.cumsum(0) - totals, totals)
    mask = torch.arange(int(lengths.max()))[None] < lengths[:, None]
    rewards = place_score_on_last_token(torch.tensor([s.score for s in scored]), mask)[mask]
    ones = torch.ones(len(tokens), dtype=torch.long)
    return {
        "prompts": _jagged(torch.cat(prompt_tensors), prompt_lengths),
        "responses": _jagged(tokens, lengths),
        "response_mask": _jagged(ones, lengths),
        "loss_mask": _jagged(ones.clone(), lengths),
        "input_ids": _jagged(full, totals),
        "position_ids": _jagged(positions, totals),
        "rm_scores": _jagged(rewards, lengths),
        "rollout_log_probs": _jagged(torch.from_numpy(drawn.log_probs), lengths),
        "num_turns": torch.full((len(prompts),), 2),
    }


def _split(drawn: GeneratedBatch) -> list[list[int]]:
    ends = np.cumsum(drawn.lengths)[:-1]
    return [part.tolist() for part in np.split(drawn.tokens, ends)]


def _jagged(values: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    return torch.nested.nested_tensor_from_jagged(values, offsets)


def _column(batch: TensorDict, name: str) -> list[Any]:
    """One Python value a row, whatever tensordict made of the column."""
    value = batch.get(name)
    if isinstance(value, NonTensorData):
        return [value.data] * len(batch)
    rows = value.tolist() if hasattr(value, "tolist") else list(value)
    return [getattr(row, "data", row) for row in rows]
