"""What every record can do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


class Stat(Protocol):
    """A frozen record of a stream: `of` one batch, `merge` with another's.

    What is seen may be that of k sites of a batch at once: then its tensors have an axis [k, …] in front, and
    so have those of the record. On a GPU that costs about as much as one site.
    """

    @classmethod
    def of(cls, seen: Any, parts: int = 2) -> Self:
        """Fold one batch: `Vectors` of a layer, `Heads` of attention.

        `parts` is how many d×d matrices a record with such may keep.
        """
        ...

    def merge(self, other: Self) -> Self:
        """The record of both streams."""
        ...

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes a record takes for vectors of this width."""
        ...


def added(one: T, other: T) -> T:
    """Two records of sums as one: every tensor in them added, in one go (on a GPU, one launch)."""
    sums = iter(torch._foreach_add(list(_tensors(one)), list(_tensors(other))))
    return _rebuilt(one, sums)


def unstacked(record: T, many: int) -> list[T]:
    """A record of `many` sites at once as one of each: its tensors cut along their first axis."""
    columns = zip(*(tensor.unbind(0) for tensor in _tensors(record)), strict=True)
    made = [_rebuilt(record, iter(values)) for values in columns]
    assert len(made) == many
    return made


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """The fields of a kind of record; none of anything else."""
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) else ()


def _tensors(record: Any) -> Iterator[Tensor]:
    for name in field_names(record.__class__):
        value = getattr(record, name)
        yield from _tensors(value) if field_names(value.__class__) else (value,)


def _rebuilt(record: Any, values: Iterator[Tensor]) -> Any:
    held = (getattr(record, name) for name in field_names(record.__class__))
    return record.__class__(
        *(_rebuilt(value, values) if field_names(value.__class__) else next(values) for value in held)
    )
