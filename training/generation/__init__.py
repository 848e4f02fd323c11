"""Sampling responses from a policy, reproducibly: a sample's noise depends on its key alone.

- `noise`     uniform numbers from (seed, key, token position)
- `pick`      the next token from logits and noise
- `decoders` forward passes with a key/value cache: a lean one for Llama-like models, transformers' for the
rest
- `sampler`   whole-batch sampling on one device
- `prompts`   chat messages to token ids
- `samples`   what is asked of an engine and what it gives back
- `engine`    the checkpoint in this process; `engines` the others behind the same interface
- `scoring`   responses to scores, through the one grader
- `shard_files` graded rollouts on disk, each row with how it was drawn
- `rollouts` problems in, graded rollout shards out: resumable, spread over Ray workers where there are
several

Used by the rollouts and evaluate stages and by the PPO rollout server: one sampler, so they cannot drift
apart.
Shapes: B sequences, T new tokens, V vocabulary.
"""
