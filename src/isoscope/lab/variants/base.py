"""What a way of attending is given, and the two ways in which most of them answer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from isoscope.models.attention.shown import Weigh, weigh


@dataclass(frozen=True)
class Place:
    """Where an attention stands: the model's width, its heads, and the layer, the first being 1."""

    width: int
    heads: int
    layer: int

    @property
    def head(self) -> int:
        """The width of a head."""
        return self.width // self.heads


@dataclass(frozen=True, eq=False)
class Given:
    """Queries, keys and values [b, h, t, e] of what stands in `hidden` [b, t, d].

    `counts` [b, t] tells which positions are there; None: all. `causal` queries see what is not after them.
    """

    hidden: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    causal: bool
    counts: Tensor | None = None

    @property
    def visible(self) -> Tensor:
        """Which key each query sees, [b or 1, 1, t, t]."""
        length = self.query.shape[2]
        seen = torch.ones(1, 1, length, length, dtype=torch.bool, device=self.query.device)
        seen = seen.tril() if self.causal else seen
        return seen if self.counts is None else seen & self.counts[:, None, None, :].bool()

    def scores(self, query: Tensor, key: Tensor, scale: float) -> Tensor:
        """Scores scale · query keyᵀ, −inf where a key is not seen, [b, h, t, t]; in 32 bits at least."""
        product = query @ key.mT
        return (scale * at_least_single(product)).masked_fill(~self.visible, -torch.inf)

    def softmax(self, query: Tensor, key: Tensor) -> Tensor:
        """The values mixed as softmax attention does, without the matrix."""
        mask = None if self.counts is None else self.visible
        causal = self.causal and mask is None
        return F.scaled_dot_product_attention(query, key, self.value, attn_mask=mask, is_causal=causal)

    def weighed(self, query: Tensor, key: Tensor, weights_of: Weigh) -> Tensor:
        """The values weighed by another map of the same scores, told to whoever measures."""
        return self.weights(query, key, weights_of)[0].to(self.value) @ self.value

    def weights(self, query: Tensor, key: Tensor, weights_of: Weigh) -> tuple[Tensor, Tensor]:
        """These weights and scores, [b, h, t, t]. A query that sees no key weighs none."""
        scale = query.shape[-1] ** -0.5
        scores = self.scores(query, key, scale)
        some = weights_of if self.counts is None else seeing(weights_of)
        return weigh(query, key, scores, scale, some), scores


def seeing(weights_of: Weigh) -> Weigh:
    """The same map, with weights of zero where a row sees no key: a softmax of nothing is NaN."""

    def of(scores: Tensor) -> Tensor:
        blind = scores.isneginf().all(-1, keepdim=True)
        return weights_of(scores.masked_fill(blind, 0)).masked_fill(blind, 0)

    return of


def at_least_single(x: Tensor) -> Tensor:
    """In 32 bits where it has fewer."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def visible_count(scores: Tensor) -> Tensor:
    """How many keys each query sees, [b, h, t, 1]."""
    return (scores > -torch.inf).sum(-1, keepdim=True)
