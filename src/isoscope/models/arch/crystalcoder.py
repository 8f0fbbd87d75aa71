"""CrystalCoder (LLM360 2023): GPT-2's block with SwiGLU, rotary position on a part of each head, and muP.

Under muP embeddings are multiplied by `mup_embeddings_scale`, and scores divided by the width of a head, not
by its root. Names and config as in LLM360's own `modeling_crystalcoder.py`, proposed to
github.com/huggingface/transformers at 7cea6a53 (config 11829b2e), and in github.com/LLM360/crystalcoder-train
at de12c9e4. Only what the published models use is here.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput
from transformers.pytorch_utils import Conv1D

from isoscope.errors import IsoscopeError
from isoscope.models.arch.configs import CrystalCoderConfig

ROTARY_BASE = 10_000


def turn(x: Tensor, width: int) -> Tensor:
    """Turn planes (2i, 2i+1), i < `width`/2, of x [b, h, t, e] by t·10000^(−2i/width); the rest stays."""
    rates = ROTARY_BASE ** -(torch.arange(0, width, 2, device=x.device, dtype=torch.float32) / width)
    angles = torch.arange(x.shape[2], device=x.device, dtype=torch.float32)[:, None] * rates
    sine, cosine = (each.repeat_interleave(2, dim=-1).to(x.dtype) for each in (angles.sin(), angles.cos()))
    turned, still = x[..., :width], x[..., width:]
    aside = torch.stack([-turned[..., 1::2], turned[..., ::2]], dim=-1).flatten(-2)
    return torch.cat([turned * cosine + aside * sine, still], dim=-1)


class _Attention(nn.Module):
    def __init__(self, config: CrystalCoderConfig) -> None:
        super().__init__()
        self.heads = config.n_head
        width = config.n_embd // config.n_head
        power = 1.0 if config.mup_scale_qk_dot_by_d else 0.5
        self.scale = width**-power if config.scale_attn_weights else 1.0
        self.rotary = config.rotary_dim or width
        self.c_attn = Conv1D(3 * config.n_embd, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, config.n_embd)

    def forward(self, x: Tensor, visible: Tensor | None) -> Tensor:
        split = self.c_attn(x).unflatten(-1, (3, self.heads, -1)).movedim(2, 0).transpose(2, 3)
        query, key, value = split
        query, key = turn(query, self.rotary), turn(key, self.rotary)
        found = functional.scaled_dot_product_attention(
            query, key, value, visible, is_causal=visible is None, scale=self.scale
        )
        mixed: Tensor = self.c_proj(found.transpose(1, 2).flatten(-2))
        return mixed


class _SwiGLU(nn.Module):
    """(W₁x ⊙ silu(W₂x)) W₃."""

    def __init__(self, config: CrystalCoderConfig) -> None:
        super().__init__()
        inner = config.n_inner or 4 * config.n_embd
        self.c_fc, self.c_fc2 = Conv1D(inner, config.n_embd), Conv1D(inner, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, inner)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.c_proj(self.c_fc(x) * functional.silu(self.c_fc2(x)))
        return made


class CrystalCoderBlock(nn.Module):
    """Attention and SwiGLU, each after a LayerNorm and added to what came in."""

    def __init__(self, config: CrystalCoderConfig) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = (nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon) for _ in range(2))
        self.attn, self.mlp = _Attention(config), _SwiGLU(config)

    def forward(self, x: Tensor, visible: Tensor | None) -> Tensor:
        """The stream [b, t, d] one block on; `visible` [b, 1, t, t] is True where a key is seen."""
        x = x + self.attn(self.ln_1(x), visible)
        fed: Tensor = x + self.mlp(self.ln_2(x))
        return fed


class CrystalCoder(PreTrainedModel):
    """The model without its head; its published files have `transformer.` before every name."""

    config_class = CrystalCoderConfig
    base_model_prefix = "transformer"
    _keys_to_ignore_on_load_unexpected = [r"attn\.bias$", r"attn\.masked_bias$", r"lm_head\.weight$"]  # noqa: RUF012

    def __init__(self, config: CrystalCoderConfig) -> None:
        super().__init__(config)
        for name, has in (("activation_function", "swiglu"), ("position_embedding_type", "rotary")):
            if (asked := getattr(config, name)) != has:
                raise IsoscopeError(
                    f"the config says {name} '{asked}', and of CrystalCoder only '{has}' is known here; "
                    "its own code may be run with --trust-remote-code."
                )
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.h = nn.ModuleList(CrystalCoderBlock(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> BaseModelOutput:
        """The last hidden state [b, t, d] of tokens [b, t]; the mask [b, t] is 1 where a token counts."""
        visible = None
        if attention_mask is not None and not bool(attention_mask.all()):
            square = torch.ones(*[input_ids.shape[1]] * 2, dtype=torch.bool, device=input_ids.device)
            itself = square.tril() & square.triu()  # padding looks at itself: a row with no key is NaN
            visible = square.tril() & attention_mask.bool()[:, None, None, :] | itself
        x = self.wte(input_ids) * self.config.mup_embeddings_scale
        for block in self.h:
            x = block(x, visible)
        return BaseModelOutput(last_hidden_state=self.ln_f(x))
