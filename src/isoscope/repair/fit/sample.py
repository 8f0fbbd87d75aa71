"""A sample of a stream: the vectors whose content has the smallest hashes.

Uniform, without replacement, the same in any order and batches; two samples merge into that of both streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import pandas as pd
import torch
from torch import Tensor

from isoscope.data.keys import content_keys
from isoscope.geometry.dimensions import spread_over
from isoscope.repair.fit.gather import Source, batches, finite
from isoscope.repair.keep.repair import Repair
from isoscope.run.observe.observe import describe

MOST = 8192  # vectors
SHOWN = ("mean_cosine_between", "relative_drift", "isoscore", "effective_rank")  # of a sample
LOOKED_AT = 16  # coordinates that are hashed: of float32 that is enough to tell vectors apart


@dataclass(frozen=True, eq=False)
class Sample:
    """Vectors by ascending hash, and the sequence each comes from."""

    keys: Tensor  # [k]
    points: Tensor  # [k, d]
    sequence: Tensor | None  # [k]; None where every vector stands alone

    @classmethod
    def of(cls, points: Tensor, sequence: Tensor | None = None) -> Self:
        """At most `MOST` vectors of one batch [n, d], all finite, as float32, by a hash of their content."""
        few = spread_over(points.shape[1], min(LOOKED_AT, points.shape[1])).to(points.device)
        keys = content_keys(points[:, few].float(), seed=0)
        drawn = cls(keys, points, None if sequence is None else sequence.cpu()).smallest()
        return replace(drawn, points=drawn.points.float().cpu())

    def merge(self, other: Self, most: int = MOST) -> Self:
        """The sample of both streams."""
        whose = None
        if self.sequence is not None and other.sequence is not None:
            whose = torch.cat([self.sequence, other.sequence])
        both = torch.cat([self.keys, other.keys]), torch.cat([self.points, other.points])
        return type(self)(*both, whose).smallest(most)

    def smallest(self, most: int = MOST) -> Self:
        """At most so many of the vectors, those of the smallest hashes, in that order."""
        order = self.keys.argsort(stable=True)[:most]
        whose = None if self.sequence is None else self.sequence[order]
        return type(self)(self.keys[order], self.points[order.to(self.points.device)], whose)


class Watched:
    """Hands on the vectors [n, d] of a source, with sequences or not; keeps a sample of the first walk."""

    def __init__(self, source: Source, progress: Callable[[int], None] | None = None) -> None:
        self._source, self._progress = source, progress
        self.sample: Sample | None = None

    def __iter__(self) -> Iterator[Tensor]:
        found: Sample | None = None
        done = 0
        for points, sequence in _pairs(self._source):
            if self.sample is None:
                kept, lost = finite(points)
                whose = sequence[points.isfinite().all(1)] if lost and sequence is not None else sequence
                new = Sample.of(kept, whose)
                found = new if found is None else found.merge(new)
            yield points
            done += len(points)
            if self._progress is not None:
                self._progress(done)
        self.sample = self.sample or found


def _pairs(source: Source) -> Iterator[tuple[Tensor, Tensor | None]]:
    several = isinstance(source, Iterable) and not hasattr(source, "ndim")
    for given in source if several else [source]:
        if isinstance(given, tuple):
            yield given
        else:
            yield from ((points, None) for points in batches(given))


def before_after(repair: Repair, sample: Sample) -> pd.DataFrame:
    """Rows of `SHOWN`, of the model ``before`` and of ``after``; each with its n, null and interval."""
    clouds = {"before": sample.points, "after": repair.apply(sample.points)}
    shown = partial(describe, sequence=sample.sequence, measures=SHOWN)
    tables = [shown(points, name=name).frame() for name, points in clouds.items()]
    return pd.concat(tables, ignore_index=True)
