"""What is found at a site: vectors, the sequence each belongs to, and a key for each sequence.

Where they come from (places.py) is the same at every site that a batch passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from isoscope.geometry.dimensions import MASSIVE, SAMPLE, median_size, spread_over
from isoscope.kernels.cloud.totals import (
    CloudSums,
    OfChunks,
    above_massive,
    cloud_norms,
    cloud_sums,
    massive_limit,
)
from isoscope.kernels.sums import label_sums
from isoscope.stats.places import GROUPS, Places, mix

__all__ = ["GROUPS", "Places", "Vectors", "by_group", "home", "mix"]


@dataclass(frozen=True, eq=False)
class Vectors:
    """Vectors that count, `points` [n, d], their `norm` [n], and where they come from.

    Those of k sites, of the same places, have an axis [k, …] in front; so have records made of them.
    Those with NaN or Inf are not `kept` [n]: nothing counts them but `not_finite`, and their norm is zero.
    They stay in their row, so that no site has to wait until it is known how many they are. Sums of single
    dimensions that nobody asks for need not be made: at d = 768 more than half of a sum's time on a CPU.
    """

    points: Tensor
    norm: Tensor
    kept: Tensor
    places: Places
    by_dimension: bool = True

    @classmethod
    def see(
        cls,
        points: Tensor,
        sequence: Tensor | None,
        key: Tensor,
        *,
        position: Tensor | None = None,
        token: Tensor | None = None,
        units: Tensor | None = None,
    ) -> Vectors:
        """Take vectors as they come; `position` [n] tells those of a sequence apart."""
        device = home(points.device)
        places = Places.of(
            len(points), sequence, key, position=position, token=token, units=units, device=device
        )
        return cls.at(points, places)

    @classmethod
    def at(cls, points: Tensor, places: Places, *, by_dimension: bool = True) -> Vectors:
        """Take the vectors of these places."""
        points = points.to(home(points.device))
        return cls(points, *cloud_norms(points), places, by_dimension)

    @cached_property
    def thinned(self) -> Vectors:
        """The share of them that covariances are made of: all, unless fewer were asked for."""
        if self.places.share >= 1:
            return self
        rows, places = self.places.thinned
        points, norm, kept = self.points[..., rows, :], self.norm[..., rows], self.kept[..., rows]
        return Vectors(points, norm, kept, places, by_dimension=False)

    @property
    def width(self) -> int:
        """d, the number of dimensions."""
        return self.points.shape[-1]

    @property
    def sequence(self) -> Tensor | None:
        """The number of each vector's sequence, [n]; None where every vector stands alone."""
        return self.places.sequence

    @property
    def key(self) -> Tensor:
        """The hash of every sequence, [s]."""
        return self.places.key

    @property
    def count(self) -> Tensor:
        """How many are kept, []."""
        return self.kept.sum(-1, dtype=torch.float64)

    @cached_property
    def sums(self) -> CloudSums:
        """What the vectors add up to, by sequence; by group where every vector stands alone."""
        found = self.unjoined
        return found if isinstance(found, CloudSums) else found.joined()

    @property
    def not_finite(self) -> Tensor:
        """How many are not kept, []."""
        return len(self.places) - self.sums.count.sum(-1)

    def means(self, parts: int) -> tuple[Tensor, Tensor]:
        """How many vectors each of `parts` (1 or 2) has [p], and their mean [p, d]."""
        found, where = self.unjoined, self.places
        if where.sequence is None and parts > 1:
            kept, part = self.kept.double(), where.part(parts)
            count = torch.zeros(parts, dtype=torch.float64, device=kept.device).index_add_(0, part, kept)
            total = label_sums(torch.where(self.kept[:, None], self.points, 0), kept, part, parts)
            return count, total / count.clamp_min(1)[:, None]
        if isinstance(found, OfChunks):
            member = where.part_of_chunks(parts)
            count, total = found.rows[..., 0] @ member.T, member @ found.dimensions[..., 0, :]
        elif parts == 1:
            count, total = found.count.sum(0, keepdim=True), found.total.sum(0, keepdim=True)
        else:
            part = where.part(parts)
            member = (torch.arange(parts, device=part.device)[:, None] == part).double()
            count, total = member @ found.count, member @ found.total
        return count, total / count.clamp_min(1)[..., None]

    @cached_property
    def unjoined(self) -> CloudSums | OfChunks:
        """The sums as the kernel leaves them."""
        where, limit = self.places, self._limit() if self.by_dimension else None
        label = where.group if where.sequence is None else where.sequence
        labels = GROUPS if where.sequence is None else len(where.key)
        return cloud_sums(
            self.points,
            self.norm,
            self.kept,
            label,
            labels,
            limit=limit,
            by_dimension=self.by_dimension,
            chunks=where.chunks,
        )

    def _limit(self) -> Tensor | None:
        """What a coordinate of each vector must reach to be massive, [n]; None where none comes near."""
        points, sequence = self.points, self.sequence
        if not points.numel() or (points.device.type == "cpu" and not _reaches(points, MASSIVE)):
            return None
        if sequence is None:
            size = points[:, _columns(points)].abs()  # the median of a GPU is slow in float64
            size = size if size.dtype == torch.float64 else size.float()
            return above_massive(size.median(1).values.double())
        if (chosen := self.places.layout.sampled(self.width)) is not None:
            return massive_limit(points, self.kept, *chosen)[..., sequence]
        found = torch.zeros(len(self.key), dtype=torch.float64, device=points.device)
        for name in torch.unique(sequence).tolist():
            found[name] = median_size(points[(sequence == name) & self.kept])
        return above_massive(found)[sequence]


def _reaches(points: Tensor, limit: float) -> bool:
    """Whether the size of any number is above the limit, NaN left out."""
    low, high = points.aminmax()  # NaN where any is
    return bool((points.abs() > limit).any() if high.isnan() else torch.maximum(-low, high) > limit)


def _columns(points: Tensor) -> Tensor:
    return spread_over(points.shape[1], min(SAMPLE, points.shape[1])).to(points.device)


def by_group(values: Tensor, group: Tensor) -> Tensor:
    """The sum of `values` [n] over each group, [G]."""
    return torch.zeros(GROUPS, dtype=torch.float64, device=values.device).index_add(0, group, values)


def home(device: torch.device) -> torch.device:
    """Where sums of what is on this device are kept."""
    return torch.device("cpu") if device.type == "mps" else device  # which has no float64
