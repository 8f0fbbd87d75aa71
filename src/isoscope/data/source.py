"""What every kind of data offers, whatever it is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from isoscope.data.batch import Batch


@runtime_checkable
class Data(Protocol):
    """Sequences that are iterated over as batches, with their number, what is known of them, and remarks."""

    @property
    def size(self) -> int:
        """How many sequences."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know, such as what was left out."""
        ...

    def __iter__(self) -> Iterator[Batch]: ...

    def facts(self) -> dict[str, object]:
        """What a run records."""
        ...
