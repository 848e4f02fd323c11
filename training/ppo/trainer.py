"""The verl trainer plug-in: VC-PPO on verl's synchronous V1 trainer (mode `vcppo`).

What differs from verl's trainer:
- advantages with lam_actor and value targets with lam_critic (arXiv 2503.01491, section 3.2)
- names and order of samples are functions of (step, position): no uuid, no arrival order reaches a batch
- rollouts and metrics of a step are on disk before its checkpoint, so the record is never behind the weights
- workers fetch only the columns that a phase reads
- guards see each step before its checkpoint is written, and can end the run (guards.py)
- lam_actor can move towards 1 (lambda_fallback.py); a language-model loss on correct samples (policy_loss.py)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ray
import torch
import transfer_queue as tq
from omegaconf import OmegaConf
from tensordict import TensorDict
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.padding_utils import upsample_batch_to_divisible_size
from verl.trainer.ppo.utils import Role
from verl.trainer.ppo.v1 import trainer_base
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils import tensordict_utils as tu
from verl.utils.debug import marked_timer
from verl.utils.device import get_device_name
from verl.workers.utils.padding import response_to_nested

import training.ppo.replica  # noqa: F401  registers the rollout engine `torch`
from training.algorithms import check_reward_sums
from training.ppo import checkpoints
from training.ppo.diagnostics import response_metrics
from training.ppo.guards import Guards, Trip, write_failure
from training.ppo.lambda_fallback import LambdaFallback
from training.ppo.metrics_log import append_metrics, read_metrics
from training.ppo.policy_loss import WEIGHT_COLUMN
from training.ppo.replay_buffer import key_order
from training.ppo.targets import TargetSettings, make_targets
from vcppo.checkpoints import commit, verify
from vcppo.config.train import GaeConfig, GuardsConfig, RewardConfig, StoppingConfig

MODE = "vcppo"
SEQUENCE_FIELDS = ["input_ids", "position_ids", "prompts", "responses", "response_mask", "loss_mask"]
"""What a forward pass reads."""


class NoLoadBalancer(trainer_base.LLMServerManager):
    """The batch agent loop addresses the servers itself: spare the load balancer's process and its
    imports."""

    async def _init_global_load_balancer(self) -> None:
        self.global_load_balancer = None


@register_trainer(MODE)
class VcppoTrainer(PPOTrainerSync):
    _numbered_step = -1
    _next_number = 0
    _dumped_step = -1
    _measured_step = -1

    # ---- set-up
    # ------------------------------------------------------------------------------------------------

    def _build_replay_buffer(self) -> Any:
        # verl keys behaviour on the literal mode name: any other silently selects the asynchronous replay
        # buffer
        self.trainer_mode = "sync"
        return super()._build_replay_buffer()

    def _init_resource_pool_mgr(self) -> None:
        super()._init_resource_pool_mgr()
        if self.config.actor_rollout_ref.rollout.name == "torch":
            trainer_base.LLMServerManager = NoLoadBalancer
        if get_device_name() == "cpu":
            from training.ppo.workers import CpuActorRolloutRefWorker, CpuTrainingWorker

            for role in list(self.role_worker_mapping):
                worker = CpuTrainingWorker if role == Role.Critic else CpuActorRolloutRefWorker
                self.role_worker_mapping[role] = ray.remote(worker)

    # ---- order: names of samples are functions of (step, position)
    # ----------------------------------------------

    def _submit_batch_to_rollout(self, batch: TensorDict) -> int:
        if self._numbered_step != self.global_steps:
            self._numbered_step, self._next_number = self.global_steps, 0
        first, count = self._next_number, len(batch)
        # no "_": verl splits trajectory keys at it
        uids = [f"{self.global_steps:07d}-{first + i:06d}" for i in range(count)]
        self._next_number += count
        batch.pop("uid")
        tu.assign_non_tensor_stack(batch, "uid", uids)
        return super()._submit_batch_to_rollout(batch)

    def _balance_batch(
        self,
        batch: KVBatchMeta,
        metrics: dict,
        logging_prefix: str = "global_seqlen",
        keep_minibatch: bool = False,
    ) -> KVBatchMeta:
        batch.reorder(sorted(range(len(batch.keys)), key=lambda i: key_order(batch.keys[i])))
        if self.resource_pool_manager.get_n_gpus() > 1:
            return super()._balance_batch(batch, metrics, logging_prefix, keep_minibatch)
        # one rank: nothing to balance, but verl would still partition in Python (0.15 s for 128 samples)
        multiple = self._get_required_batch_multiple(1)
        return upsample_batch_to_divisible_size(batch, multiple, self.tokenizer.eos_token_id)

    # ---- the algorithm
    # -----------------------------------------------------------------------------------------

    def on_train_begin(self) -> None:
        super().on_train_begin()
        own = self.config.vcppo
        gae = GaeConfig.model_validate(OmegaConf.to_container(own.gae))
        stopping = answer = None
        if own.stopping is not None:
            stopping = StoppingConfig(**own.stopping)
            answer = self.tokenizer.encode(stopping.answer_token, add_special_tokens=False)[0]
        self.settings = TargetSettings(gae, own.language_model_loss, stopping, answer)
        self.guards = Guards(GuardsConfig(**own.guards), RewardConfig(**own.reward))
        self.fallback = LambdaFallback(gae.fallback)
        # a resumed run continues the rows of steps that were seen before (launch cut the file to this step)
        earlier = read_metrics(Path(own.metrics_path))
        self.guards.replay(earlier)
        self.fallback.replay(earlier)

    def _compute_advantage(self, batch: KVBatchMeta, metrics: dict) -> KVBatchMeta:
        """Decoupled GAE; for GRPO, which has no critic, verl's own. Whatever else is measured or weighted by
        the sampled tokens is made here too, so that the batch's columns are fetched once."""
        if not self.use_critic:
            batch = super()._compute_advantage(batch, metrics)
        names = ["response_mask", "responses", "extra_fields", "rm_scores"]
        names += ["values"] if self.use_critic else []
        names += ["old_log_probs", "ref_log_prob"] if self.use_reference_policy else []
        data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=names)
        infos = [dict(extra)["reward_extra_info"] for extra in list(data["extra_fields"])]
        metrics.update(response_metrics(data["responses"].offsets().diff(), infos))
        right = torch.tensor([info["status"] == "right" for info in infos])
        padded = data.exclude("extra_fields").to_padded_tensor()
        scores = torch.tensor([info["score"] for info in infos])
        check_reward_sums(padded["rm_scores"], padded["response_mask"], scores)
        columns, measured = make_targets(dict(padded.items()), right, self.settings, self.fallback)
        metrics.update(measured)
        if not columns:
            return batch
        nested = {name: response_to_nested(column, data["response_mask"]) for name, column in columns.items()}
        return tq.kv_batch_put(
            keys=batch.keys,
            partition_id=batch.partition_id,
            fields=TensorDict(nested, batch_size=len(batch)),
        )

    # ---- cost: workers fetch only what they read; the synchronous rollout is timed as "gen"
    # --------------------------

    def prepare_step(self) -> dict:
        with marked_timer("gen", self.timing_raw):
            return super().prepare_step()

    def _compute_old_log_prob(self, batch: KVBatchMeta, metrics: dict) -> KVBatchMeta:
        batch.fields = SEQUENCE_FIELDS
        return super()._compute_old_log_prob(batch, metrics)

    def _compute_values(self, batch: KVBatchMeta, metrics: dict) -> KVBatchMeta:
        batch.fields = SEQUENCE_FIELDS
        return super()._compute_values(batch, metrics)

    def _update_critic(self, batch: KVBatchMeta, metrics: dict) -> KVBatchMeta:
        batch.fields = [*SEQUENCE_FIELDS, "values", "returns"]
        return super()._update_critic(batch, metrics)

    def _update_actor(self, batch: KVBatchMeta, metrics: dict) -> KVBatchMeta:
        reference = ["ref_log_prob"] if self.use_reference_policy else []
        weights = [WEIGHT_COLUMN] if self.config.vcppo.language_model_loss > 0 else []
        batch.fields = [*SEQUENCE_FIELDS, "old_log_probs", "advantages", *reference, *weights]
        return super()._update_actor(batch, metrics)

    # ---- records before checkpoints
    # -----------------------------------------------------------------------------

    def step(self, metrics: dict, timing_raw: dict) -> KVBatchMeta:
        batch = super().step(metrics, timing_raw)
        self._log_rollout_data(batch, timing_raw, self.config.trainer.rollout_data_dir)
        epoch = (self.global_steps - 1) // max(self.steps_per_epoch, 1)
        self._compute_metrics(batch, metrics, timing_raw, self.global_steps, epoch)
        self.fallback.observe(metrics.get("critic/explained_variance"))
        trips = self.guards.observe(self.global_steps, metrics)
        metrics.update({f"guard/{trip.guard}": 1.0 for trip in trips})
        append_metrics(Path(self.config.vcppo.metrics_path), self.global_steps, metrics)
        self._announce(metrics)
        for trip in trips:
            print(f"GUARD {trip.message()}", flush=True)
        if trips and trips[0].stops:
            self._stop(trips[0], metrics)
        return batch

    def _stop(self, trip: Trip, metrics: dict) -> None:
        """End the run before this step is saved; the last good checkpoint becomes the newest."""
        root = Path(self.config.trainer.default_local_dir)
        aside = checkpoints.set_aside(root, trip.since)
        last_good = checkpoints.last_before(root, trip.since)
        write_failure(Path(self.config.vcppo.guard_path), trip, last_good, aside)
        self.logger.log(data=metrics, step=self.global_steps)
        kept = f"the last good checkpoint is of step {last_good}" if last_good else "no checkpoint was good"
        raise trip.error(f"{trip.message()}. Evidence: {self.config.vcppo.guard_path}; {kept}")

    def _compute_metrics(
        self, batch: KVBatchMeta, metrics: dict, timing_raw: dict, global_steps: int, epoch: int
    ) -> None:
        # verl calls this after the checkpoint, `step` before it; the second call of a step adds only the
        # timings
        if self._measured_step != global_steps:
            self._measured_step = global_steps
            # verl's own clock of the step still runs, and adds to what it finds: give a copy
            timings = {**timing_raw, "step": sum(timing_raw.values())}
            super()._compute_metrics(batch, metrics, timings, global_steps, epoch)
        else:
            metrics.update({f"timing_s/{name}": seconds for name, seconds in timing_raw.items()})

    def _log_rollout_data(self, batch: KVBatchMeta, timing_raw: dict, rollout_data_dir: str) -> None:
        if self._dumped_step != self.global_steps:
            self._dumped_step = self.global_steps
            super()._log_rollout_data(batch, timing_raw, rollout_data_dir)
            for pending in self._dump_futures:
                pending.result()

    def _save_checkpoint(self) -> None:
        super()._save_checkpoint()
        root = Path(self.config.trainer.default_local_dir)
        facts: dict[str, Any] = dict(self.config.vcppo.checkpoint_facts)
        facts["layout"] = dict(facts["layout"])
        facts["policy_version"] = self.global_steps
        directory = root / f"{checkpoints.PREFIX}{self.global_steps}"
        commit(directory, {"step": self.global_steps, **facts})
        verify(directory)
        # while a guard counts bad steps, the checkpoint from before them must survive
        since = self.guards.suspect_since()
        good = checkpoints.last_before(root, since) if since is not None else None
        pinned = frozenset() if good is None else frozenset({good})
        checkpoints.sweep(root, self.config.vcppo.keep_checkpoints, pinned)

    def _announce(self, metrics: dict) -> None:
        parts = [
            f"accuracy {metrics['response/accuracy']:.3f}",
            f"length {metrics['response/length']:.1f}",
        ]
        if "critic/value_bias" in metrics:
            parts.append(f"value bias {metrics['critic/value_bias']:+.3f}")
        seconds = metrics.get("timing_s/step")
        parts.append(f"{seconds:.1f} s" if seconds is not None else "")
        print(f"STEP {self.global_steps}/{self.total_training_steps}  {'  '.join(parts)}", flush=True)
