"""verl's handle on the built-in rollout engine: `actor_rollout_ref.rollout.name=torch`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import ray
from verl.workers.rollout import base
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry

from training.ppo.rollout_server import server_name


class TorchReplica(RolloutReplica):
    """Finds the server that the runner started before the trainer's workers, so that both import side by
    side."""

    async def launch_servers(self) -> None:
        server = ray.get_actor(server_name(self.replica_rank))
        await server.ready.remote()
        self.servers, self._server_handle = [server], server
        self._server_address = f"torch://{self.replica_rank}"


class TorchServerAdapter(BaseRollout):
    """Lives in the trainer's worker process and pushes new weights to its replica's server."""

    def __init__(self, config: Any, model_config: Any, device_mesh: Any, replica_rank: int = -1) -> None:
        super().__init__(config, model_config, device_mesh)
        rank, rollout = int(os.environ["RANK"]), self.config
        size = (
            rollout.tensor_model_parallel_size
            * rollout.data_parallel_size
            * rollout.pipeline_model_parallel_size
        )
        self.replica_rank = rank // size if replica_rank == -1 else replica_rank
        self.is_leader_rank = rank % size == 0

    async def resume(self, tags: list[str]) -> None: ...
    async def release(self) -> None: ...

    async def update_weights(
        self,
        weights: Iterable[tuple[str, Any]],
        global_steps: int | None = None,
        wire_format: str = "named_tensors",
        **_: Any,
    ) -> None:
        if wire_format != "named_tensors":
            raise NotImplementedError(
                f"wire format {wire_format!r}: the torch engine takes named tensors only"
            )
        # the generator gathers shards of all ranks, so every rank has to drain it
        named = {name: value.detach().cpu() for name, value in weights}
        if self.is_leader_rank:
            await ray.get_actor(server_name(self.replica_rank)).load_weights.remote(named, global_steps)


RolloutReplicaRegistry.register("torch", lambda: TorchReplica)
base._ROLLOUT_REGISTRY[("torch", "async")] = "training.ppo.replica.TorchServerAdapter"
