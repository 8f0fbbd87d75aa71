"""Which records fit the memory that is allowed. The largest go first, and the rows say so.

Those that keep no more than a sum for every group of sequences are always kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from isoscope.formatting import said_size
from isoscope.stats.base import Stat

DEFAULT = 2e9  # bytes
SMALL = 8 * 64 * 4096  # bytes of 64 vectors: what every record of sums stays below at this width


@dataclass(frozen=True)
class Plan:
    """The records to keep, in how many parts, and why any is not kept."""

    stats: tuple[type[Stat], ...]
    parts: int
    not_kept: str = ""


def plan(widths: Iterable[int], stats: Iterable[type[Stat]], memory: float) -> Plan:
    """Keep all records in two halves if they fit, else whole, else without the largest."""
    widths, wanted = list(widths), tuple(stats)

    def size(chosen: Iterable[type[Stat]], parts: int) -> int:
        return sum(stat.size(width, parts) for stat in chosen for width in widths)

    for parts in (2, 1):
        if size(wanted, parts) <= memory:
            return Plan(wanted, parts)
    kept = {stat for stat in wanted if stat.size(4096, 1) < SMALL}
    for stat in sorted(set(wanted) - kept, key=lambda stat: (size([stat], 1), stat.__name__)):
        if size({*kept, stat}, 1) <= memory:
            kept.add(stat)
    why = f"all records need {said_size(size(wanted, 1))} and {said_size(memory)} are allowed"
    left = tuple(stat for stat in wanted if stat in kept)
    return Plan(left, 1, f"{why}: raise --memory or choose fewer --layers")
