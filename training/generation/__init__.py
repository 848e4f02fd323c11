"""Sampling responses from a policy, reproducibly: a sample's noise depends on its key alone.

- `noise`     uniform numbers from (seed, key, token position)
- `pick`      the next token from logits and noise
- `decoders` forward passes with a key/value cache: a lean one for Llama-like models, transformers' for the
rest
- `sampler`   whole-batch sampling on one device
- `prompts`   chat messages to token ids
- `rollouts` problems in, graded rollout shards out: resumable, spread over Ray workers where there are
several

Used by the rollouts and evaluate stages and by the PPO rollout server: one sampler, so they cannot drift
apart.
Shapes: B sequences, T new tokens, V vocabulary.
"""
