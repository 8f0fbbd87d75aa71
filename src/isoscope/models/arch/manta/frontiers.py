"""Where MANTa cuts bytes into blocks: a small transformer with a window says how likely each byte begins one.

Its parameters are those of transformers' Longformer, without global attention BERT with a window. Its layers
stand beside the stream: they give a probability.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from isoscope.models.arch.configs import MantaConfig

EPSILON = 1e-12


class _SelfAttention(nn.Module):
    """Attention to the bytes at most half a window away; the global weights are stored and never used."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        for name in ("query", "key", "value", "query_global", "key_global", "value_global"):
            self.add_module(name, nn.Linear(width, width))

    def forward(self, x: Tensor, visible: Tensor) -> Tensor:
        query, key, value = (
            self.get_submodule(name)(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        found = functional.scaled_dot_product_attention(query, key, value, visible)
        return found.transpose(1, 2).flatten(-2)


class _Added(nn.Module):
    """LayerNorm(W x + what was there)."""

    def __init__(self, inside: int, width: int) -> None:
        super().__init__()
        self.dense, self.LayerNorm = nn.Linear(inside, width), nn.LayerNorm(width, eps=EPSILON)

    def forward(self, x: Tensor, there: Tensor) -> Tensor:
        normed: Tensor = self.LayerNorm(self.dense(x) + there)
        return normed


class _Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        attends, added = _SelfAttention(width, heads), _Added(width, width)
        self.attention = nn.ModuleDict({"self": attends, "output": added})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, 4 * width)})
        self.output = _Added(4 * width, width)

    def forward(self, x: Tensor, visible: Tensor) -> Tensor:
        x = self.attention["output"](self.attention["self"](x, visible), x)
        changed: Tensor = self.output(functional.gelu(self.intermediate["dense"](x)), x)
        return changed


class LocalTransformer(nn.Module):
    """From embeddings of bytes [b, s, d] to states that know the bytes around them, [b, s, d]."""

    def __init__(self, config: MantaConfig) -> None:
        super().__init__()
        width, window = config.byte_embedding_dim, config.frontier_predictor_attention_window
        heads, layers = config.frontier_predictor_num_attention_heads, config.frontier_predictor_num_layers
        longest = config.max_length_inputs or config.max_length_encoder_decoder
        self.reach = window // 2
        positions = (longest // window + 1) * window + 1  # the first is that of padding
        embeddings: dict[str, nn.Module] = {
            "word_embeddings": nn.Embedding(1, width, padding_idx=0),
            "position_embeddings": nn.Embedding(positions, width, padding_idx=0),
            "token_type_embeddings": nn.Embedding(2, width),
            "LayerNorm": nn.LayerNorm(width, eps=EPSILON),
        }
        self.embeddings = nn.ModuleDict(embeddings)
        # No ModuleList: these are no layers of the model, and are not to be found as such (blocks.py).
        stack = nn.ModuleDict({str(i): _Layer(width, heads) for i in range(layers)})
        self.encoder = nn.ModuleDict({"layer": stack})
        self.pooler = nn.ModuleDict({"dense": nn.Linear(width, width)})

    def forward(self, embedded: Tensor, attention_mask: Tensor | None) -> Tensor:
        """The states; the mask [b, s] is 1 where there is a byte."""
        places = torch.arange(embedded.shape[1], device=embedded.device)
        known = self.embeddings["position_embeddings"](places + 1)
        x = embedded + known + self.embeddings["token_type_embeddings"](torch.zeros_like(places))
        x = self.embeddings["LayerNorm"](x)
        near = (places[:, None] - places).abs() <= self.reach
        visible = near[None, None]
        if attention_mask is not None:  # padding looks at itself, so that no row is without a key
            visible = near & attention_mask.bool()[:, None, None, :] | (places[:, None] == places)
        for layer in self.encoder["layer"].children():
            x = layer(x, visible)
        return x


class FrontierPredictor(nn.Module):
    """How likely each byte begins a block, [b, s]: σ(w·state + b)."""

    def __init__(self, config: MantaConfig) -> None:
        super().__init__()
        self.local_transformer = LocalTransformer(config)
        self.output_projection = nn.Linear(config.byte_embedding_dim, 1)

    def forward(self, embedded: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The probabilities of bytes [b, s, d]."""
        states = self.local_transformer(embedded, attention_mask)
        return torch.sigmoid(self.output_projection(states).squeeze(-1))
