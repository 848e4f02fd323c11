"""VC-PPO on verl's V1 trainer, in Ray actors. One process an actor; who talks to whom:

    tasks.train -> launch -> Ray -> runner (TaskRunner: the trainer's own process)
                                      |-- workers        actor, critic (torch, FSDP)
                                      |-- rollout_server policy copy that samples (no verl import: starts
                                      sooner)
                                      '-- TransferQueue  columns of the batch between phases

- `verl_config`     the typed configuration to verl's keys: one pure function, and the check of extra keys
- `verl_networks`   the keys of actor, reference policy and critic
- `launch`          start Ray, run the runner, turn its failures into ours; imports neither torch nor verl
- `runner`          the TaskRunner actor: starts everything that imports slowly side by side
- `trainer`         the verl trainer plugin: decoupled GAE, reproducible order, records before checkpoints
- `targets`         advantages, returns and loss weights of a batch: tensors in, tensors out
- `diagnostics`     what is measured of each batch: value bias, explained variance, values by position
- `stopping`        early stopping where responses are written in steps of equal length
- `guards`, `guard_rules`       end a run that has gone wrong before it is saved, with the evidence
- `lambda_fallback` lam_actor towards 1 while the critic explains nothing
- `policy_loss`     the clipped loss plus VAPO's language-model loss on correct samples
- `agent_loop`      whole-batch generation and scoring into the TransferQueue
- `rollout_server`, `replica`   the built-in rollout engine and verl's handle on it
- `replay_buffer`   batch order by key instead of by arrival
- `workers`, `cpu_platform`     verl on a CPU: device, engines, seeded value head, fused cross-entropy
- `reward`          the score function for verl's own agent loops (the vLLM engine)
- `dataset`         only the columns that the rollout uses
- `checkpoints`     which checkpoints stay, go, or are set aside (vcppo.checkpoints: what makes one whole)
- `metrics_log`     metrics.jsonl, one line a step, the local truth
- `hooks` every private piece of verl that we rely on (tests/training/ppo/test_hooks.py is the contract)

verl is pinned exactly; docs/adr/ says why. To follow a new verl, run the contract test first.
"""
