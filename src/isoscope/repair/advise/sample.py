"""The vectors that advice is given on: a sample, in two halves that share no unit.

A unit is a sequence where vectors are tokens, else a vector, of which copies count once; so no vector that a
repair was fitted on is among those it is shown on. Vectors with NaN or Inf, and of norm zero, are left out
and counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.data.keys import content_keys
from isoscope.errors import IsoscopeError
from isoscope.geometry.dimensions import spread_over
from isoscope.repair.fit.gather import as_tensor
from isoscope.repair.fit.sample import LOOKED_AT, MOST, Sample

LEAST = 32  # vectors: half to fit on, and half with twice the 8 that an interval needs
SAME = 1e-3  # of a standard deviation: what batches of other lengths round off is a thousandth of it
SAME_OF_FEW = 1e-6  # the same where there are fewer coordinates to tell vectors apart by
ROUNDING = 1e-4  # of its mean: a dimension that spreads less may be a constant and float32
Array = np.ndarray[Any, Any]
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, eq=False)
class Half:
    """Vectors [n, d] in float64, and the number of the unit of each, [n]."""

    points: Tensor
    unit: Tensor

    def __len__(self) -> int:
        return len(self.points)


@dataclass(frozen=True, eq=False)
class Halves:
    """One half to fit on, one to look at, and what was seen on the way.

    `seen` is how many vectors were looked at, `usable` how many of them (of those that were kept) are finite
    and not zero, `copies` how many of these equal an earlier one. `sequences` is whether units are sequences.
    """

    fit: Half
    shown: Half
    seen: int
    usable: int
    left_out: int
    no_direction: int
    copies: int
    sequences: bool

    @property
    def digest(self) -> str:
        """Sixteen hex digits of the vectors."""
        found = hashlib.blake2b(digest_size=8)
        for half in (self.fit, self.shown):
            found.update(half.points.numpy().tobytes() + b"|")
        return found.hexdigest()

    def facts(self) -> dict[str, object]:
        """What a run keeps of it."""
        sizes = {"vectors": self.seen, "dimensions": self.shown.points.shape[1]}
        halves = {"fitted on": len(self.fit), "shown on": len(self.shown)}
        return {**sizes, **halves, "parted by": "sequence" if self.sequences else "vector, each once"}


def halves(batches: Iterable[tuple[Tensor, Tensor | None]], *, most: int = MOST) -> Halves:
    """Draw a sample from batches of vectors [n, d] and their sequences [n], and part it.

    At most `most` vectors are kept, by the smallest hashes of their places; without sequences a place is the
    number in the stream.
    """
    kept: Sample | None = None
    seen = left_out = no_direction = 0
    for given, sequence in batches:
        points = given.double()
        finite = points.isfinite().all(1)
        points = torch.where(finite[:, None], points, 0.0)
        pointing = points.norm(dim=1) > 0
        good = finite & pointing
        place = torch.arange(seen, seen + len(points))
        whose = None if sequence is None else sequence.cpu()[good]
        new = Sample(content_keys(place[good][:, None], seed=2), points[good], whose)
        kept = new if kept is None else kept.merge(new, most)
        seen += len(points)
        left_out += int((~finite).sum())
        no_direction += int((finite & ~pointing).sum())
    if kept is not None and kept.points.shape[1] < 2:
        raise IsoscopeError("vectors of one dimension point one way or the other; advice takes two or more.")
    if kept is None or len(kept.points) < LEAST:
        lost = {"have NaN or Inf": left_out, "are zero": no_direction}
        why = ", ".join(f"{many} more {what}" for what, many in lost.items() if many)
        raise IsoscopeError(
            f"advice takes at least {LEAST} vectors, half to fit repairs on and half to look at; "
            f"got {len(kept.points) if kept else 0}{f' ({why})' if why else ''}."
        )
    kept = kept.smallest(most)
    usable = len(kept.points)
    kept, copies = _once(kept)
    if copies == usable - 1:
        raise IsoscopeError(f"all {usable} vectors are the same; there is nothing to repair.")
    unit = kept.keys if kept.sequence is None else kept.sequence
    each = torch.unique(unit)
    order = content_keys(each[:, None], seed=1).argsort(stable=True)
    fitted = torch.isin(unit, each[order[: len(each) // 2]])
    if min(int(fitted.sum()), int((~fitted).sum())) < LEAST // 4 or len(each) < LEAST // 2:
        what = "sequences" if kept.sequence is not None else "different vectors"
        raise IsoscopeError(
            f"{len(unit)} vectors of {len(each)} {what} cannot be parted into a half to fit repairs on and "
            f"one to look at; advice takes {LEAST // 2} {what} or more."
        )
    first, second = (Half(kept.points[half], unit[half]) for half in (fitted, ~fitted))
    return Halves(first, second, seen, usable, left_out, no_direction, copies, kept.sequence is not None)


def rows_of(
    vectors: Array, limit: int | None, *, progress: Progress | None = None, at_once: int = MOST
) -> Iterator[tuple[Tensor, None]]:
    """Rows of an array [n, d], at most `limit` of them drawn with one seed, a few thousand at a time."""
    n = len(vectors)
    every = limit is None or limit >= n
    rows = None if every else np.sort(np.random.default_rng(0).choice(n, limit, replace=False))
    many = n if rows is None else len(rows)
    for start in range(0, many, at_once):
        chosen = slice(start, start + at_once) if rows is None else rows[start : start + at_once]
        yield as_tensor(np.asarray(vectors[chosen])), None
        if progress is not None:
            progress(min(start + at_once, many), many)


def _once(kept: Sample) -> tuple[Sample, int]:
    """Each vector once, and how many were copies of an earlier one; tokens stay as they are."""
    points = kept.points
    few = points[:, spread_over(points.shape[1], min(LOOKED_AT, points.shape[1]))]
    mean = few.mean(0)
    least = (ROUNDING * mean.abs()).clamp_min(torch.finfo(torch.float64).tiny)  # a constant has no spread
    spread = torch.maximum(few.std(0), least)
    same = SAME if few.shape[1] == LOOKED_AT else SAME_OF_FEW
    rounded = ((few - mean) / (same * spread)).clamp(-1e15, 1e15).round().long()
    first = np.unique(content_keys(rounded, seed=0).numpy(), return_index=True)[1]
    copies = len(points) - len(first)
    if kept.sequence is not None:
        return kept, copies
    chosen = torch.from_numpy(np.sort(first))
    return Sample(kept.keys[chosen], points[chosen], None), copies
