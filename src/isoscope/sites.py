"""Where in a model something was seen: a kind and, where it has one, a layer.

Written ``layer.3`` or ``output``; chosen by glob. Selecting nothing is an error, never an empty table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from isoscope.errors import IsoscopeError


@dataclass(frozen=True)
class Site:
    """A place: ``Site("layer", 3)`` is what leaves block 3, ``Site("layer", 0)`` what enters block 1."""

    kind: str
    layer: int | None = None

    def __str__(self) -> str:
        return self.kind if self.layer is None else f"{self.kind}.{self.layer}"


def select(sites: Iterable[Site], patterns: str) -> tuple[Site, ...]:
    """Keep the sites that match one of the comma-separated globs; a bare number means that layer.

    >>> [str(site) for site in select([Site("layer", 0), Site("layer", 1), Site("output")], "0,out*")]
    ['layer.0', 'output']
    """
    there = tuple(sites)
    globs = [f"layer.{part}" if part.isdigit() else part for part in patterns.replace(" ", "").split(",")]
    chosen = tuple(site for site in there if any(fnmatchcase(str(site), glob) for glob in globs))
    if not chosen:
        raise IsoscopeError(f"'{patterns}' selects no site; there are: {', '.join(map(str, there))}.")
    return chosen
