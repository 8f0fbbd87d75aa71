"""Clouds to try the laws on: odd shapes made by hand, and a hypothesis strategy that makes more.

A Cloud is what a Vectors is made of, kept apart so that it can be cut into batches of whole sequences.
Keys are drawn by the sequence's number, not its content, so that a transformed cloud keeps its halves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import torch
from hypothesis import strategies as st
from torch import Tensor

from isoscope.data.keys import content_keys
from isoscope.stats.base import Stat
from isoscope.stats.seen import Vectors

DTYPES = (torch.bfloat16, torch.float16, torch.float32, torch.float64)


class Records(dict[tuple[type[Stat], int], Stat]):
    """The records of a batch by kind and number of parts, each folded when it is first asked for."""

    def __init__(self, batches: Sequence[Vectors]) -> None:
        self.batches = batches

    def __missing__(self, asked: tuple[type[Stat], int]) -> Stat:
        kind, parts = asked
        folded = reduce(lambda one, other: one.merge(other), [kind.of(seen, parts) for seen in self.batches])
        return self.setdefault(asked, folded)


@dataclass(frozen=True, eq=False)
class Cloud:
    """Vectors, the sequence of each (None: every vector stands alone), one key per sequence.

    Every vector has a position and a token; `other` [n, 3] is what another layer has there. A cloud keeps
    its records, so that all measures read what was folded once, as in a run.
    """

    points: Tensor
    sequence: Tensor | None
    key: Tensor
    position: Tensor
    token: Tensor
    other: Tensor

    def seen(self) -> Vectors:
        return self._see(self.points)

    def seen_elsewhere(self) -> Vectors:
        return self._see(self.other)

    def _see(self, points: Tensor) -> Vectors:
        return Vectors.see(points, self.sequence, self.key, position=self.position, token=self.token)

    @cached_property
    def records(self) -> Records:
        """Records of the whole cloud at once."""
        return Records([self.seen()])

    @cached_property
    def records_elsewhere(self) -> Records:
        """Records of the whole cloud as the other layer has it."""
        return Records([self.seen_elsewhere()])

    @cached_property
    def merged(self) -> Records:
        """Records merged from batches of one sequence each, in reverse order."""
        return Records([batch.seen() for batch in self.batches])

    @cached_property
    def merged_elsewhere(self) -> Records:
        """Merged records of the cloud as the other layer has it."""
        return Records([batch.seen_elsewhere() for batch in self.batches])

    @cached_property
    def batches(self) -> list[Cloud]:
        """The sequences one by one, from the last."""
        return [self.take([s]) for s in reversed(range(len(self.key)))]

    def rows(self, index: Tensor) -> Cloud:
        """These vectors; sequences keep their numbers, and vectors that stand alone their keys."""
        fields = {name: getattr(self, name)[index] for name in ("points", "position", "token", "other")}
        if self.sequence is None:
            return replace(self, key=self.key[index], **fields)
        return replace(self, sequence=self.sequence[index], **fields)

    def alone(self) -> Cloud:
        """The same vectors, each a sequence of its own."""
        return replace(self, sequence=None, key=self.key[self.label])

    def sampled(self, size: int) -> Cloud:
        """The vectors of the `size` smallest places, in their order."""
        return self.rows(self.seen().places.place.argsort(stable=True)[:size])

    @property
    def label(self) -> Tensor:
        """The number of the sequence of every vector, [n]."""
        return torch.arange(len(self.points)) if self.sequence is None else self.sequence

    @property
    def half(self) -> Tensor:
        """Which of two halves every vector falls into, [n]."""
        return ((self.key // 32) % 2)[self.label]

    def take(self, sequences: Sequence[int]) -> Cloud:
        """These sequences alone, in this order, numbered anew."""
        chosen = torch.tensor(list(sequences), dtype=torch.long)
        rows = [torch.nonzero(self.label == s).flatten() for s in chosen.tolist()]
        index = torch.cat(rows) if rows else chosen
        sequence = None
        if self.sequence is not None:
            sequence = torch.repeat_interleave(
                torch.arange(len(rows)), torch.tensor([len(row) for row in rows], dtype=torch.long)
            )
        return replace(self.rows(index), sequence=sequence, key=self.key[chosen])

    def keep(self, rows: Tensor) -> Cloud:
        """The vectors where `rows` is True; sequences keep their keys."""
        return self.rows(torch.nonzero(rows).flatten())

    def finite(self) -> Cloud:
        return self.keep(self.points.isfinite().all(1))

    def changed(self, change: Callable[[Tensor], Tensor]) -> Cloud:
        return replace(self, points=change(self.points))


def cloud(points: Tensor, lengths: Sequence[int] | None = None, seed: int = 0) -> Cloud:
    """A cloud of these vectors, the first `lengths[0]` of which make the first sequence, and so on."""
    size = len(points) if lengths is None else len(lengths)
    key = content_keys(torch.arange(size)[:, None], seed)
    sequence = None if lengths is None else torch.repeat_interleave(torch.arange(size), torch.tensor(lengths))
    number = torch.arange(len(points))
    counted = [] if lengths is None else [torch.arange(length) for length in lengths]
    position = torch.cat(counted) if counted else torch.zeros_like(number)
    other = torch.cat([points[:, :1].double(), gaussian(len(points), 2, seed + 1)], dim=1)
    return Cloud(points, sequence, key, position, number % 7, other)


def words(points: Tensor) -> Cloud:
    """12,000 vectors in sequences of 50 with tokens of three frequencies: 300 once, 100 at 5, 50 at 224."""
    counts = torch.tensor([1] * 300 + [5] * 100 + [224] * 50)
    token = torch.repeat_interleave(torch.arange(len(counts)), counts)
    order = torch.randperm(len(token), generator=torch.Generator().manual_seed(3))
    return replace(cloud(points, [50] * 240), token=token[order])


def gaussian(n: int, width: int, seed: int = 0) -> Tensor:
    return torch.randn(n, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def rotation(width: int, seed: int = 0) -> Tensor:
    """A random orthogonal matrix."""
    return torch.linalg.qr(gaussian(width, width, seed))[0]


def _with_zeros() -> Tensor:
    points = gaussian(9, 4, 7)
    points[::3] = 0
    return points


def _round_and_far() -> Tensor:
    return gaussian(60, 7, 8).float() + 100


ODD: dict[str, Cloud] = {
    "fewer vectors than dimensions": cloud(gaussian(5, 60, 1)),
    "far fewer vectors than dimensions": cloud(gaussian(3, 2000, 2) + 3),
    "fewer vectors than dimensions, in sequences": cloud(gaussian(12, 40, 3), [5, 1, 4, 2]),
    "one vector": cloud(gaussian(1, 4, 4)),
    "one vector of one dimension": cloud(gaussian(1, 1, 5)),
    "two vectors": cloud(gaussian(2, 5, 6)),
    "two opposite vectors": cloud(torch.tensor([[1.0, 0.0], [-1.0, 0.0]])),
    "one dimension": cloud(gaussian(9, 1, 9)),
    "zero rows": cloud(_with_zeros()),
    "nothing but zero rows": cloud(torch.zeros(4, 3)),
    "duplicated rows": cloud(gaussian(3, 5, 10).repeat(4, 1)),
    "one row over and over": cloud(gaussian(1, 4, 11).expand(11, 4).clone()),
    "one row over and over, many times": cloud(gaussian(1, 4, 12).expand(3001, 4).clone() * 1000),
    "one half all the same": cloud(torch.cat([gaussian(1, 3, 13).expand(12, 3)]), [3, 3, 3, 3]),
    "one sequence": cloud(gaussian(9, 4, 14), [9]),
    "one vector a sequence": cloud(gaussian(11, 4, 15), [1] * 11),
    "ragged sequences": cloud(gaussian(60, 4, 16) + 1, [1, 2, 3, 14, 20, 20]),
    "ragged sequences, enough for intervals": cloud(
        gaussian(90, 6, 17) + 0.3, [1, 2, 3, 14, 20, 20, 9, 7, 6, 8]
    ),
    "rows along the axes": cloud(torch.cat([torch.eye(4), -torch.eye(4)])),
    "round and far off": cloud(_round_and_far()),
    "one massive dimension": cloud(gaussian(80, 6, 18) + torch.tensor([0, 0, 3000.0, 0, 0, 0])),
    "tiny vectors": cloud(gaussian(30, 3, 19).float() * 1e-38),
    "more rows than a slice": cloud(gaussian(2500, 3, 20), [500, 1000, 3, 997]),
    "bfloat16": cloud((gaussian(50, 6, 21) + 0.5).bfloat16(), [10, 20, 5, 15]),
    "float16": cloud((gaussian(50, 6, 22) + 0.5).half()),
}


@st.composite
def clouds(draw: st.DrawFn, least: int = 1) -> Cloud:
    """Up to 30 vectors in up to 6 dimensions: any dtype, drifted or not, ragged, with zeros and twins."""
    width = draw(st.integers(1, 6))
    lengths = draw(st.lists(st.integers(1, 5), min_size=least, max_size=6))
    seed = draw(st.integers(0, 10_000))
    points = gaussian(sum(lengths), width, seed) + draw(st.sampled_from([0.0, 0.3, 10.0]))
    if draw(st.booleans()):
        points[:: draw(st.integers(1, 4))] = 0
    if draw(st.booleans()):
        points[-1] = points[0]
    points = points.to(draw(st.sampled_from(DTYPES)))
    return cloud(points, draw(st.sampled_from([lengths, None])), seed)
