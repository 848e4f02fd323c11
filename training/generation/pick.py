"""The next token from logits and one uniform number a row (inverse of the cumulative distribution)."""

from __future__ import annotations

import torch


def pick_tokens(
    logits: torch.Tensor, uniforms: torch.Tensor, temperature: float, top_p: float, top_k: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw one token a row.

    Args:
        logits: float32 `[B, V]`.
        uniforms: float64 `[B]` in [0, 1).
        temperature: 0 takes the most likely token.
        top_p: keep the smallest set of tokens whose probability reaches it; 1 keeps all.
        top_k: keep the k most likely tokens; 0 keeps all.

    Returns:
        tokens int64 `[B]` and their log-probability float32 `[B]` under the distribution that was drawn from.
    """
    if temperature == 0:
        log_probs = logits.log_softmax(-1)
        tokens = log_probs.argmax(-1)
        return tokens, log_probs.gather(1, tokens[:, None]).squeeze(-1)
    if temperature != 1.0:
        logits = logits / temperature
    if top_k > 0:
        smallest_kept = logits.topk(min(top_k, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < smallest_kept, float("-inf"))
    if top_p < 1.0:
        ordered, order = logits.sort(descending=True, stable=True)
        probs = ordered.softmax(-1)
        dropped = (probs.cumsum(-1) - probs) >= top_p
        logits = logits.masked_fill(torch.zeros_like(dropped).scatter(1, order, dropped), float("-inf"))
    log_probs = logits.log_softmax(-1)
    # float64, and scaled by the last sum: a float32 sum ends at 0.9999998 and the top noise would fall off
    # the end
    cumulative = log_probs.double().exp().cumsum(-1)
    targets = uniforms.to(logits.device) * cumulative[:, -1]
    tokens = torch.searchsorted(cumulative, targets[:, None], right=True).squeeze(-1)
    tokens = tokens.clamp_(max=logits.shape[-1] - 1)
    return tokens, log_probs.gather(1, tokens[:, None]).squeeze(-1)
