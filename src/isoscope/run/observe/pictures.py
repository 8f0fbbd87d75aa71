"""Records as points of pictures: the queries and keys of each head on shared, centred and random axes.

Decided here: an observation gives at most `MOST` points, so that a page stays light. With many heads each
has fewer, down to `LEAST` a cloud; with more heads than that allows, every layer keeps the same number, those
whose mean query and mean key are largest and most parallel, since there is something to be seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from torch import Tensor

from isoscope.geometry.clouds import AXES, pull, shared_axes
from isoscope.results.points import Points
from isoscope.sites import Site
from isoscope.stats.base import Stat
from isoscope.stats.clouds import SIZE, Clouds

MOST = 60_000  # points of an observation
LEAST = 24  # points of a cloud, where there are as many

Records = Mapping[Site, Mapping[type[Stat], Stat]]


def pictures(records: Records, most: int = MOST) -> Iterator[Points]:
    """Every series of every picture: of each head kept, on each kind of axes, queries, keys and share.

    The share is one point: the part of the energy on the first axis and on the second.
    """
    found = _clouds(records)
    kept, each = _room(found, most)
    for site, clouds in found.items():
        near = clouds.on("cpu")
        pairs = {head: near.pair(head, each) for head in range(near.heads)}
        for head in sorted(sorted(pairs, key=lambda head: -pull(*pairs[head]))[:kept]):
            yield from _drawn(site, head, *pairs[head])


def heads_left_out(records: Records, most: int = MOST) -> str:
    """A sentence on the heads that are in no picture; empty where all are."""
    found = _clouds(records)
    kept, _ = _room(found, most)
    if all(clouds.heads <= kept for clouds in found.values()):
        return ""
    return (
        f"pictures of queries and keys show {kept} heads of each layer: those whose mean query and mean key "
        "are largest and most parallel"
    )


def _clouds(records: Records) -> dict[Site, Clouds]:
    there = {site: cast("Clouds", kept[Clouds]) for site, kept in records.items() if Clouds in kept}
    return {site: clouds for site, clouds in there.items() if len(clouds.query.place)}


def _room(found: Mapping[Site, Clouds], most: int) -> tuple[int, int]:
    """How many heads of a layer are kept, and how many points of each cloud."""
    heads = sum(clouds.heads for clouds in found.values())
    widest = max((clouds.heads for clouds in found.values()), default=0)

    def each(count: int) -> int:
        return (most // (len(AXES) * max(count, 1)) - 1) // 2

    if each(heads) >= LEAST:
        return widest, min(SIZE, each(heads))
    kept = max(1, most // (len(AXES) * (2 * LEAST + 1)) // max(len(found), 1))
    return min(kept, widest), LEAST


def _drawn(site: Site, head: int, query: Tensor, key: Tensor) -> Iterator[Points]:
    if min(len(query), len(key)) < 2:  # too few to have an axis of their own
        return
    for how in AXES:
        found = shared_axes(query, key, how, seed=1000 * (site.layer or 0) + head)
        parts = {"query": found.query, "key": found.key, "share": found.share[None]}
        for series, places in parts.items():
            x, y = places.T.tolist()
            yield Points(how, site.kind, site.layer, head, series, x, y)
