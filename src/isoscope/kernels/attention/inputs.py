"""What attention is computed from: one record, whose additive terms are all views of [b, h, t, s].

No term is copied: a mask of [b, 1, t, s] is a view whose head stride is zero. What is hidden by position, by
length and by the mask is asked for block by block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from isoscope.geometry.attention import AttentionRows, seen

STATISTICS = tuple(field.name for field in fields(AttentionRows))


@dataclass(frozen=True, eq=False)
class AttentionInputs:
    """Either `q` [b, h, t, e] and `k` [b, g, s, e], or `scores` [b, h, t, s] that exist already."""

    shape: tuple[int, int, int, int]
    q: Tensor | None
    k: Tensor | None
    scores: Tensor | None
    scale: float
    causal: bool
    key_lengths: Tensor | None
    mask: Tensor | None
    bias: Tensor | None
    window: int | None
    softcap: float | None
    key_bias: Tensor | None
    wanted: frozenset[str]

    @property
    def source(self) -> Tensor:
        """What the scores come from."""
        source = self.q if self.scores is None else self.scores
        assert source is not None
        return source

    @property
    def dtype(self) -> torch.dtype:
        """What the statistics are computed in: float64 for float64, else float32."""
        return torch.float64 if self.source.dtype == torch.float64 else torch.float32

    @property
    def groups(self) -> int:
        """The number of key heads."""
        return self.shape[1] if self.k is None else self.k.shape[1]

    @property
    def offset(self) -> int:
        """Query i stands at key position i + offset."""
        return self.shape[3] - self.shape[2] if self.causal else 0

    def part(self, batch: slice, group: slice) -> AttentionInputs:
        """The same for some sequences and some key heads with their query heads."""
        _, h, t, s = self.shape
        r = h // self.groups
        heads = slice(group.start * r, group.stop * r)

        def cut(term: Tensor | None) -> Tensor | None:
            return None if term is None else term[batch, heads]

        return replace(
            self,
            shape=(batch.stop - batch.start, heads.stop - heads.start, t, s),
            q=cut(self.q),
            k=None if self.k is None else self.k[batch, group],
            scores=cut(self.scores),
            key_lengths=None if self.key_lengths is None else self.key_lengths[batch],
            mask=cut(self.mask),
            bias=cut(self.bias),
            key_bias=cut(self.key_bias),
        )

    def reach(self, rows: slice) -> slice:
        """The keys outside which position alone lets no query of `rows` see any."""
        low, high = 0, self.shape[3]
        if self.causal:
            high = min(high, rows.stop + self.offset)
        if self.window is not None:
            low = max(low, rows.start + self.offset - self.window + 1)
            high = high if self.causal else min(high, rows.stop - 1 + self.window)
        return slice(low, max(low, high))

    def by_position(self, at: Tensor, key: Tensor) -> Tensor:
        """Whether queries that stand `at` see `key` as far as order and window say."""
        gap = at - key
        visible = gap >= 0 if self.causal else torch.ones_like(gap, dtype=torch.bool)
        return visible if self.window is None else visible & (gap.abs() < self.window)

    def hides(self, rows: slice, keys: slice) -> bool:
        """Whether position alone hides any of these keys from any of these queries."""
        first, last = rows.start + self.offset, rows.stop - 1 + self.offset
        if self.causal and keys.stop - 1 > first:
            return True
        return self.window is not None and max(last - keys.start, keys.stop - 1 - first) >= self.window

    def visible(self, rows: slice, keys: slice) -> Tensor | None:
        """Which of these keys each of these queries sees, broadcastable to [b, h, t, s]; None for all."""
        device, visible = self.source.device, None
        key = torch.arange(keys.start, keys.stop, device=device)
        if self.hides(rows, keys):
            at = torch.arange(rows.start, rows.stop, device=device)[:, None] + self.offset
            visible = self.by_position(at, key)[None, None]
        if self.key_lengths is not None:
            inside = key < self.key_lengths[:, None, None, None]
            visible = inside if visible is None else visible & inside
        for term in (self.mask, self.scores):
            if term is not None:
                here = seen(compact(term[..., rows, keys]))
                visible = here if visible is None else visible & here
        return visible

    def first_keys(self) -> Tensor:
        """The first key that any query of a head sees, [b, h]; 0 where there is none."""
        b, h, _, s = self.shape
        device = self.source.device
        if self.mask is None and self.scores is None:
            low = max(self.offset, 0) - self.window + 1 if self.causal and self.window is not None else 0
            return torch.full((b, h), min(max(low, 0), s - 1), device=device)
        anyone = torch.zeros((b, h, s), dtype=torch.bool, device=device)
        for rows in pieces(self.shape[2], 256):
            keys = self.reach(rows)
            visible = self.visible(rows, keys)
            anyone[..., keys] |= True if visible is None else visible.any(-2)
        return anyone.int().argmax(-1)


def compact(term: Tensor) -> Tensor:
    """The same with every dimension that only repeats cut to one."""
    return term[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in term.stride())]


def pieces(total: int, size: int, start: int = 0) -> Iterator[slice]:
    """Cut [start, total) into slices of `size`, the last one shorter.

    >>> list(pieces(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for low in range(start, total, size):
        yield slice(low, min(low + size, total))
