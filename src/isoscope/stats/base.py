"""What every record can do."""

from __future__ import annotations

from typing import Any, Protocol, Self


class Stat(Protocol):
    """A frozen record of a stream: `of` one batch, `merge` with another's."""

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
