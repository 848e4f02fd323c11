"""Forward passes with a key/value cache.

`LeanDecoder` computes Llama-like models on transformers' own weights with a tenth of the Python a token: on
a CPU and a
small model the interpreter is what costs. `ModelDecoder` is transformers' forward and takes any causal
model. Both give
the same tokens (tests/training/generation).
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
import torch.nn.functional as F

LEAN_MODEL_TYPES = frozenset({"llama", "qwen2", "qwen3", "mistral"})


class Decoder(Protocol):
    def refresh(self) -> None:
        """Read the weights again after they have changed."""

    def prefill(
        self, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, max_new: int
    ) -> torch.Tensor:
        """Left-padded prompts `[B, W]` in, logits of the next token float32 `[B, V]` out."""

    def step(self, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """One token a row `[B]` in, logits of the next one `[B, V]` out."""

    def keep(self, rows: torch.Tensor) -> None:
        """Go on with these rows only (indices int64): finished sequences cost nothing more."""


def make_decoder(model: Any) -> Decoder:
    """The lean decoder where it knows the architecture, else transformers' forward."""
    config = model.config
    plain_window = not getattr(config, "use_sliding_window", False) and (
        config.model_type != "mistral" or getattr(config, "sliding_window", None) is None
    )
    if config.model_type in LEAN_MODEL_TYPES and plain_window:
        return LeanDecoder(model)
    return ModelDecoder(model)


class ModelDecoder:
    """Any causal language model, through transformers' forward."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.past: Any = None
        self.mask = torch.empty(0)

    def refresh(self) -> None:
        pass

    def prefill(
        self, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, max_new: int
    ) -> torch.Tensor:
        self.mask, self.past = mask, None
        return self._forward(ids, positions)

    def step(self, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(ids), 1)], 1)
        return self._forward(ids[:, None], positions[:, None])

    def keep(self, rows: torch.Tensor) -> None:
        self.mask = self.mask[rows]
        self.past.batch_select_indices(rows)

    def _forward(self, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        output = self.model(
            input_ids=ids,
            attention_mask=self.mask,
            position_ids=positions,
            past_key_values=self.past,
            use_cache=True,
            logits_to_keep=1,
        )
        self.past = output.past_key_values
        return output.logits[:, -1].float()


class LeanDecoder:
    """Dense Llama-like decoder: fused qkv and gate/up products, preallocated cache, no module calls."""

    def __init__(self, model: Any) -> None:
        config = model.config
        self.model = model
        self.num_heads, self.num_kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.eps, self.activation = config.rms_norm_eps, model.model.layers[0].mlp.act_fn
        positions = torch.arange(config.max_position_embeddings, device=model.device)[None]
        cos, sin = model.model.rotary_emb(model.model.embed_tokens.weight[:1, None], positions)
        self.cos, self.sin = cos[0], sin[0]
        self.refresh()

    def refresh(self) -> None:
        layers = self.model.model.layers
        self.layers = [
            (
                layer.input_layernorm.weight.data,
                _fuse(layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj),
                _fuse(layer.self_attn.o_proj),
                (getattr(layer.self_attn, "q_norm", None), getattr(layer.self_attn, "k_norm", None)),
                layer.post_attention_layernorm.weight.data,
                _fuse(layer.mlp.gate_proj, layer.mlp.up_proj),
                _fuse(layer.mlp.down_proj),
            )
            for layer in layers
        ]
        self.embedding = self.model.model.embed_tokens.weight.data
        self.final_norm = self.model.model.norm.weight.data
        self.head = self.model.lm_head.weight.data

    def prefill(
        self, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, max_new: int
    ) -> torch.Tensor:
        batch, width = ids.shape
        shape = (len(self.layers), batch, self.num_kv_heads, width + max_new, self.head_dim)
        self.keys = self.embedding.new_zeros(shape)
        self.values = self.embedding.new_zeros(shape)
        self.length = width
        self.valid = torch.cat([mask.bool(), mask.new_ones(batch, max_new, dtype=torch.bool)], 1)
        eye = torch.eye(width, dtype=torch.bool, device=ids.device)
        causal = torch.ones_like(eye).tril()
        # a padded row attends to itself, or its softmax over nothing is NaN and spreads
        attend = (causal[None] & self.valid[:, None, :width]) | eye[None]
        return self._forward(ids, positions, 0, attend[:, None])

    def step(self, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        self.length += 1
        attend = self.valid[:, None, None, : self.length]
        return self._forward(ids[:, None], positions[:, None], self.length - 1, attend)

    def keep(self, rows: torch.Tensor) -> None:
        self.keys, self.values, self.valid = self.keys[:, rows], self.values[:, rows], self.valid[rows]

    def _forward(
        self, ids: torch.Tensor, positions: torch.Tensor, start: int, attend: torch.Tensor
    ) -> torch.Tensor:
        batch, width = ids.shape
        heads, kv_heads, dim, end = self.num_heads, self.num_kv_heads, self.head_dim, start + width
        cos, sin = self.cos[positions][:, :, None], self.sin[positions][:, :, None]
        hidden = self.embedding[ids]
        size = (hidden.shape[-1],)
        for i, (norm_in, qkv, out, (q_norm, k_norm), norm_mid, gate_up, down) in enumerate(self.layers):
            mixed = F.linear(F.rms_norm(hidden, size, norm_in, self.eps), *qkv)
            mixed = mixed.view(batch, width, heads + 2 * kv_heads, dim)
            q, k, v = mixed.split([heads, kv_heads, kv_heads], dim=2)
            if q_norm is not None and k_norm is not None:
                q, k = q_norm(q), k_norm(k)
            q, k = q * cos + _rotate_half(q) * sin, k * cos + _rotate_half(k) * sin
            self.keys[i, :, :, start:end] = k.transpose(1, 2)
            self.values[i, :, :, start:end] = v.transpose(1, 2)
            attended = F.scaled_dot_product_attention(
                q.transpose(1, 2),
                self.keys[i, :, :, :end],
                self.values[i, :, :, :end],
                attn_mask=attend,
                enable_gqa=heads != kv_heads,
            )
            hidden = hidden + F.linear(attended.transpose(1, 2).reshape(batch, width, heads * dim), *out)
            gate, up = F.linear(F.rms_norm(hidden, size, norm_mid, self.eps), *gate_up).chunk(2, -1)
            hidden = hidden + F.linear(self.activation(gate) * up, *down)
        return F.linear(F.rms_norm(hidden[:, -1], size, self.final_norm, self.eps), self.head).float()


def _fuse(*layers: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Weights (and biases) of linear layers with the same input, stacked into one product."""
    bias = None if layers[0].bias is None else torch.cat([layer.bias.data for layer in layers])
    return torch.cat([layer.weight.data for layer in layers]), bias


def _rotate_half(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], -1)
