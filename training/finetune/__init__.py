"""Fine-tuning before reinforcement learning, on transformers' Trainer: SFT, reward model, value pretraining.

Modules:
- `sft`           imitation of traces, loss on the response only
- `reward_model`  Bradley-Terry on pairs of rollouts, rescaled to the reward
- `pairs`         which pairs
- `critic`        value pretraining on Monte-Carlo returns
- `calibration`   is the critic calibrated, and does it pass its gate
- `rollouts`      rollout rows as token sequences with a score, split by prompt
- `inference`     values of a value model for many sequences
- `batches`       padding a list of sequences into one batch
- `trainer`       what the three share: arguments, resuming, what a finished job leaves behind
- `callbacks`     progress lines, stop at non-finite numbers, early stop
- `checkpoints`   away with torn ones of transformers (vcppo.checkpoints: what makes one whole)
- `distributed`   one process here, or the same function on every worker of Ray Train

Each kind is a job: a frozen dataclass that can be pickled, and a function `run(job, progress)` that leaves
the model and `history.json` in the job's folder, resuming from what an earlier attempt left there. To add a
kind, write such a pair, give it to `distributed.run_job`, and call that from a stage in `tasks/`.

Shapes: B sequences, T tokens, prompt and response together, padded on the right. Attention is causal, so what
stands left of the padding never sees it and no attention mask is passed.
"""
