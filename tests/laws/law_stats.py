"""The laws of records, as checkers that raise, and the table of records they run over."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from isoscope.stats.centre import Centre
from isoscope.stats.dimensions import Dimensions
from isoscope.stats.directions import Contributions, Directions
from isoscope.stats.moments import Moments
from isoscope.stats.orientation import Orientation
from isoscope.stats.reservoir import Reservoir
from isoscope.stats.seen import Vectors
from isoscope.stats.sums import Sums
from isoscope.stats.types import Types
from isoscope.stats.within import PerSequence, Within
from tests.laws.law_clouds import Cloud

MERGED = 1e-9  # merged records against whole ones, of the largest number in the field

Fold = Callable[[Vectors], Any]
Law = Callable[[Fold, Cloud], None]


@dataclass(frozen=True)
class Record:
    """A record as it is folded, under a name of its own."""

    name: str
    kind: type
    fold: Fold


STATS = (
    Record("directions", Directions, Directions.of),
    Record("contributions", Contributions, Contributions.of),
    Record("centre", Centre, Centre.of),
    Record("moments in two halves", Moments, lambda seen: Moments.of(seen, 2)),
    Record("moments whole", Moments, lambda seen: Moments.of(seen, 1)),
    Record("orientation", Orientation, Orientation.of),
    Record("dimensions", Dimensions, Dimensions.of),
    Record("reservoir", Reservoir, Reservoir.of),
    Record("types", Types, Types.of),
    Record("within", Within, Within.of),
    Record("per sequence", PerSequence, lambda seen: Within.of(seen).residual),
    Record("sums of vectors", Sums, Sums.of),
    Record("sums of directions", Sums, Sums.of_directions),
)


def agree(one: Any, other: Any, where: str = "record") -> None:
    """Two records hold the same numbers, to `MERGED`."""
    for field in dataclasses.fields(one):
        name, mine, its = f"{where}.{field.name}", getattr(one, field.name), getattr(other, field.name)
        if dataclasses.is_dataclass(mine):
            agree(mine, its, name)
            continue
        mine, its = (torch.as_tensor(x) for x in (mine, its))
        mine, its = (x.long() if x.dtype == torch.bool else x for x in (mine, its))
        assert mine.shape == its.shape, f"{name}: shapes {tuple(mine.shape)} and {tuple(its.shape)}"
        assert mine.double().isfinite().all(), f"{name} is not finite"
        apart = float((mine - its).abs().max()) if mine.numel() else 0.0
        allowed = MERGED * (1 + float(its.abs().max()) if its.numel() else 1.0)
        assert apart <= allowed, f"{name}: {apart:g} apart, {allowed:g} allowed"


def thirds(cloud: Cloud) -> list[Cloud]:
    """Three batches of whole sequences, some of them perhaps empty."""
    return [cloud.take(range(start, len(cloud.key), 3)) for start in range(3)]


def associative(fold: Fold, cloud: Cloud) -> None:
    a, b, c = (fold(part.seen()) for part in thirds(cloud))
    agree(a.merge(b).merge(c), a.merge(b.merge(c)))


def commutative(fold: Fold, cloud: Cloud) -> None:
    a, b, _ = (fold(part.seen()) for part in thirds(cloud))
    agree(a.merge(b), b.merge(a))


def empty(fold: Fold, cloud: Cloud) -> None:
    """The record of nothing is neutral, on both sides, to the last bit."""
    nothing, something = fold(cloud.take([]).seen()), fold(cloud.seen())
    for joined in (nothing.merge(something), something.merge(nothing)):
        agree(joined, something)
    for joined in (nothing.merge(nothing), nothing):
        assert all(float(x.abs().sum()) == 0 for x in numbers(joined)), "the record of nothing is not zero"


def one_row(fold: Fold, cloud: Cloud) -> None:
    """A stream that comes one vector at a time, each its own sequence, is the cloud of lone vectors."""
    alone = cloud.alone()
    rows = [fold(alone.take([i]).seen()) for i in range(len(alone.points))]
    agree(reduce(lambda one, other: one.merge(other), rows), fold(alone.seen()))


def batching(fold: Fold, cloud: Cloud) -> None:
    """Any batch size and any order of the sequences make the same record."""
    whole = fold(cloud.seen())
    count = len(cloud.key)
    for size in (1, 2, 4):
        order = torch.randperm(count, generator=torch.Generator().manual_seed(size)).tolist()
        batches = [fold(cloud.take(order[i : i + size]).seen()) for i in range(0, count, size)]
        agree(reduce(lambda one, other: one.merge(other), batches), whole)


LAWS: tuple[Law, ...] = (associative, commutative, empty, one_row, batching)


def numbers(record: Any) -> list[Tensor]:
    """Every number in a record, field by field."""
    found: list[Tensor] = []
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        found += numbers(value) if dataclasses.is_dataclass(value) else [torch.as_tensor(value).double()]
    return found
