"""Layers folded into records: which vectors count, where they come from, and what they add up to.

Records of sums (`of_sums`), and those that gather what they need of a site, are made of all sites of a batch
at once: on a GPU that costs as much as for one site, and nothing waits for the device in between. How vectors
lie in their sequences is kept from batch to batch, for those that are cut alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from isoscope.data.batch import Batch
from isoscope.data.counting import Counted, select_counted
from isoscope.kernels.cloud.chunks import sent
from isoscope.kernels.cloud.totals import CloudSums, OfChunks, joined
from isoscope.models.survey import Survey
from isoscope.run.observe.memory import Plan
from isoscope.sites import Site
from isoscope.stats.base import Stat
from isoscope.stats.places import Layout
from isoscope.stats.seen import Places, Summed, Vectors, home

Keep = Callable[[Site, type[Stat], Stat], None]
KeepAll = Callable[[Sequence[Site], type[Stat], Stat], None]
MOST_CUTS = 16  # that are kept: sequences of every length may come, and a cut takes some megabytes


@dataclass(frozen=True, eq=False)
class _Cut:
    """Which vectors of a site count, and how they lie: the same for every batch of which the same counts."""

    counts: Tensor | None
    counted: Counted
    near: Counted  # the same on the CPU
    layout: Layout


@dataclass(frozen=True, eq=False)
class _Waiting:
    """What sites of one width have shown of a batch, to be put together when it is done."""

    places: Places
    sites: list[Site] = field(default_factory=list)
    sums: list[CloudSums | OfChunks] = field(default_factory=list)
    gathered: dict[Any, list[Any]] = field(default_factory=dict)  # by kind of record


class Layers:
    """Folds what flows at layers. Records of one site go to `keep`, those of many at once to `keep_all`."""

    def __init__(
        self, kept: Plan, found: Survey, keep: Keep, keep_all: KeepAll, covariance_rows: float
    ) -> None:
        self.found, self.keep, self.keep_all = found, keep, keep_all
        self._covariance_rows, self._parts = covariance_rows, kept.parts
        self._of_sums: list[Any] = [stat for stat in kept.stats if getattr(stat, "of_sums", False)]
        self._gathering: list[Any] = [stat for stat in kept.stats if hasattr(stat, "gather")]
        self._others = [stat for stat in kept.stats if stat not in (*self._of_sums, *self._gathering)]
        self._by_dimension = any(getattr(stat, "by_dimension", False) for stat in kept.stats)
        self._cuts: dict[Any, _Cut] = {}
        self._here: dict[Any, tuple[Counted, Places]] = {}  # of the batch that is running
        self._waiting: dict[Any, _Waiting] = {}

    def add(self, site: Site, seen: Tensor, batch: Batch) -> str:
        """Fold what one site shows of a batch; gives a remark."""
        if not (self._of_sums or self._gathering or self._others):
            return ""
        if seen.dim() > 3:  # a feature map has no tokens before its positions
            batch = replace(batch, patches=None)
        flow = self.found.vectors(site, seen)
        counted, places = self._places(flow, batch, decoder=site in self.found.decoder)
        vectors = Vectors.at(counted.of(flow), places, by_dimension=self._by_dimension)
        for stat in self._others:
            self.keep(site, stat, stat.of(vectors, self._parts))
        waiting = self._waiting.setdefault((id(places), vectors.width), _Waiting(places))
        waiting.sites.append(site)
        if self._of_sums:
            waiting.sums.append(vectors.unjoined)
        for stat in self._gathering:
            waiting.gathered.setdefault(stat, []).append(stat.gather(vectors))
        return counted.remark

    def finish(self) -> None:
        """The batch is done."""
        for waiting in self._waiting.values():
            if waiting.sums:
                seen = Summed(joined(waiting.sums), waiting.places)
                for stat in self._of_sums:
                    self.keep_all(waiting.sites, stat, stat.of(seen))
            for stat, found in waiting.gathered.items():
                self.keep_all(waiting.sites, stat, stat.of_gathered(found))
        self._waiting.clear()
        self._here.clear()

    def _places(self, flow: Tensor, batch: Batch, *, decoder: bool) -> tuple[Counted, Places]:
        """Which vectors count of what flows, and where they come from: worked out once a batch and shape."""
        tokens = batch.tokens(decoder=decoder, batch_axis=self.found.input_axis)
        fed = None if tokens is None else tokens.shape
        kind = tuple(flow.shape[:-1]), flow.device, decoder, batch.patches, fed
        if kind not in self._here:
            cut = self._cut(kind, flow, batch, decoder, tokens)
            token = None
            here = batch.tokens_near(decoder=decoder, batch_axis=self.found.input_axis)
            if here is not None and cut.near.token is not None:
                token = cut.near.of(here[..., None])[:, 0]
            places = Places(cut.layout, batch.keys.cpu(), token, self._covariance_rows)
            self._here[kind] = cut.counted, places
        return self._here[kind]

    def _cut(self, kind: Any, flow: Tensor, batch: Batch, decoder: bool, tokens: Tensor | None) -> _Cut:
        counts = batch.counted(flow.shape[1] if flow.dim() == 3 else 0, decoder=decoder)
        known = self._cuts.get(kind)
        if known is None or not _same(known.counts, counts):
            # which tokens there are does not matter here, and to ask a GPU for them would take waiting
            blank = None if tokens is None else torch.zeros((), dtype=tokens.dtype).expand(tokens.shape)
            counted = select_counted(flow.shape, batch, decoder=decoder, tokens=blank)
            layout = Layout.of(
                len(counted.sequence), counted.sequence, len(batch), counted.position, home(flow.device)
            )
            if len(self._cuts) >= MOST_CUTS:
                self._cuts.clear()
            rows = None if counted.rows is None else sent(counted.rows, flow.device)
            self._cuts[kind] = _Cut(counts, replace(counted, rows=rows), counted, layout)
        return self._cuts[kind]


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or (one.shape == other.shape and torch.equal(one, other))
