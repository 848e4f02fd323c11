"""verl's replay buffer with the batch ordered by key instead of by arrival
(trainer.v1.sampler.custom_sampler)."""

from __future__ import annotations

from typing import Any

from transfer_queue import KVBatchMeta
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

POLL_SECONDS = 0.02
"""The synchronous rollout has finished when the buffer is asked; verl's 2 s would be most of a small step."""


def key_order(key: str) -> tuple[str, int, int]:
    """Sort key of a trajectory named `uid_sample_output`."""
    uid, sample, output = key.rsplit("_", 2)
    return uid, int(sample), int(output)


class OrderedReplayBuffer(ReplayBuffer):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"poll_interval": POLL_SECONDS, **kwargs})

    def _select_prompt_uids(self, partition_id: str, sampleable_keys: Any, batch_size: int) -> Any:
        # verl iterates a set: ties among the prompts of one step would depend on PYTHONHASHSEED
        return super()._select_prompt_uids(partition_id, sorted(sampleable_keys), batch_size)

    def _materialize_batch(
        self, partition_id: str, selected_prompt_uids: Any, partition_snapshot: Any
    ) -> Any:
        batch = super()._materialize_batch(partition_id, selected_prompt_uids, partition_snapshot)
        order = sorted(range(len(batch.keys)), key=lambda i: key_order(batch.keys[i]))
        return KVBatchMeta(
            partition_id=batch.partition_id,
            keys=[batch.keys[i] for i in order],
            tags=[batch.tags[i] for i in order],
        )
