"""What attention is computed from: one record, whose additive terms are all views of [b, h, t, s].

No term is copied: a mask of [b, 1, t, s] is a view whose head stride is zero. What is hidden by position, by
length and by the mask is asked for block by block, as one `Strip` per block of queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

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

    def part(self, batch: slice) -> AttentionInputs:
        """The same for some sequences."""

        def cut(term: Tensor | None) -> Tensor | None:
            return None if term is None else term[batch]

        return replace(
            self,
            shape=(batch.stop - batch.start, *self.shape[1:]),
            q=cut(self.q),
            k=cut(self.k),
            scores=cut(self.scores),
            key_lengths=cut(self.key_lengths),
            mask=cut(self.mask),
            bias=cut(self.bias),
            key_bias=cut(self.key_bias),
        )

    def strips(self, size: int) -> Iterator[Strip]:
        """Blocks of `size` queries with the keys they see; none where a block sees no key."""
        lengths = None if self.key_lengths is None else self.key_lengths.aminmax()
        for rows in pieces(self.shape[2], size):
            reach, clear = self._by_position(rows)
            if lengths is not None:
                reach = _cut(reach, reach.start, int(lengths.max))
                clear = _cut(clear, clear.start, int(lengths.min))
            marks = self._marks(rows, reach)
            if marks is not None and reach.start < reach.stop:
                reach, clear, marks = _by_marks(marks, reach, clear)
            if reach.start >= reach.stop:
                continue
            yield self._strip(rows, reach, clear, marks)

    def _by_position(self, rows: slice) -> tuple[slice, slice]:
        """The keys that some query of `rows` may see by position, and the keys that every one may see."""
        first, last, s = rows.start + self.offset, rows.stop - 1 + self.offset, self.shape[3]
        low, high, clear_low, clear_high = 0, s, 0, s
        if self.causal:
            high, clear_high = last + 1, first + 1
        if self.window is not None:
            low, clear_low = first - self.window + 1, last - self.window + 1
            if not self.causal:
                high, clear_high = last + self.window, first + self.window
        reach = _cut(slice(0, s), low, high)
        return reach, _cut(reach, clear_low, clear_high)

    def _marks(self, rows: slice, keys: slice) -> Tensor | None:
        """Which keys the mask and the scores show, boolean, sizes of 1 where they repeat; None for all."""
        marks = None
        for term in (self.mask, self.scores):
            if term is not None:
                here = seen(compact(term[..., rows, keys]))
                marks = here if marks is None else marks & here
        return marks

    def _strip(self, rows: slice, reach: slice, clear: slice, marks: Tensor | None) -> Strip:
        """A strip whose `edges` are the keys of `reach` outside `clear`."""
        if clear.start >= clear.stop:
            clear = slice(reach.start, reach.start)
        count: Tensor | int = clear.stop - clear.start
        edges = []
        for low, high in ((reach.start, clear.start), (clear.stop, reach.stop)):
            if low < high:
                columns = slice(low - reach.start, high - reach.start)
                mine = marks if marks is None or marks.shape[3] == 1 else marks[..., columns]
                shown = self._shown(rows, slice(low, high), mine)
                edges.append((columns, shown.to(self.dtype)))
                count = count + edges[-1][1].sum(-1)
        return Strip(rows, reach, count, tuple(edges))

    def _shown(self, rows: slice, keys: slice, marks: Tensor | None) -> Tensor:
        """Which of these keys each of these queries sees, boolean, broadcastable to [b, h, t, s]."""
        device = self.source.device
        key = torch.arange(keys.start, keys.stop, device=device)
        at = torch.arange(rows.start, rows.stop, device=device)[:, None] + self.offset
        shown = self.by_position(at, key)[None, None]
        if self.key_lengths is not None:
            shown = shown & (key < self.key_lengths[:, None, None, None])
        return shown if marks is None else shown & marks

    def by_position(self, at: Tensor, key: Tensor) -> Tensor:
        """Whether queries that stand `at` see `key` as far as order and window say."""
        gap = at - key
        visible = gap >= 0 if self.causal else torch.ones_like(gap, dtype=torch.bool)
        return visible if self.window is None else visible & (gap.abs() < self.window)

    def first_keys(self) -> Tensor:
        """The first key that any query of a head sees, [b, h]; 0 where there is none."""
        b, h, t, s = self.shape
        device = self.source.device
        if self.mask is None and self.scores is None:
            low = max(self.offset, 0) - self.window + 1 if self.causal and self.window is not None else 0
            return torch.full((b, h), min(max(low, 0), s - 1), device=device)
        anyone = torch.zeros((b, h, s), dtype=torch.bool, device=device)
        for rows in pieces(t, 256):
            keys, clear = self._by_position(rows)
            marks = self._marks(rows, keys)
            if clear != keys or self.key_lengths is not None:
                marks = self._shown(rows, keys, marks)
            assert marks is not None
            anyone[..., keys] |= marks.view(torch.uint8).amax(2).bool()
        return anyone.int().argmax(-1)

    def sees(self, key: Tensor) -> Tensor:
        """Whether each query sees one `key` [b, h], boolean [b, h, t]."""
        b, h, t, _ = self.shape
        index = key[..., None]
        visible = self.by_position(torch.arange(t, device=key.device) + self.offset, index)
        if self.key_lengths is not None:
            visible &= index < self.key_lengths[:, None, None]
        column = index[..., None].expand(b, h, t, 1)
        for term in (self.mask, self.scores):
            if term is not None:
                visible &= seen(term.gather(-1, column)[..., 0])
        return visible


class Strip(NamedTuple):
    """A block of queries with the keys from the first to the last that any of them sees.

    What lies outside `edges` every query sees. An edge is a range of columns, counted from `keys.start`, with
    1 where a key is visible and 0 where it is not, broadcastable to [b, h, t, columns].
    """

    rows: slice
    keys: slice
    visible: Tensor | int  # their number, broadcastable to [b, h, t]
    edges: tuple[tuple[slice, Tensor], ...]

    def of_heads(self, heads: slice) -> Strip:
        """The same for some heads."""
        if all(shown.shape[1] == 1 for _, shown in self.edges):
            return self
        edges = tuple((columns, shown[:, heads]) for columns, shown in self.edges)
        assert isinstance(self.visible, Tensor)
        return self._replace(visible=self.visible[:, heads], edges=edges)


def _cut(keys: slice, low: int, high: int) -> slice:
    low = max(keys.start, low)
    return slice(low, max(low, min(keys.stop, high)))


def _by_marks(marks: Tensor, reach: slice, clear: slice) -> tuple[slice, slice, Tensor]:
    """`reach` cut to keys that anyone sees, `clear` to a range that everyone sees, and marks of `reach`."""
    bits = marks.view(torch.uint8).expand(-1, -1, -1, reach.stop - reach.start)
    anyone = bits.amax((0, 1, 2)).nonzero()[:, 0]
    if not len(anyone):
        return slice(0, 0), slice(0, 0), marks
    inside = _cut(reach, reach.start + int(anyone[0]), reach.start + int(anyone[-1]) + 1)
    clear = _cut(inside, clear.start, clear.stop)
    everyone = bits[..., clear.start - reach.start : clear.stop - reach.start]
    everyone = everyone.amin((0, 1, 2)) if everyone.numel() else bits.new_empty(0)
    ends = everyone.diff(prepend=everyone.new_zeros(1), append=everyone.new_zeros(1)).nonzero()[:, 0].tolist()
    runs = [(high - low, low, high) for low, high in zip(ends[::2], ends[1::2], strict=True)]
    _, low, high = max(runs, default=(0, 0, 0))
    if marks.shape[3] > 1:
        marks = marks[..., inside.start - reach.start : inside.stop - reach.start]
    return inside, slice(clear.start + low, clear.start + high), marks


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
