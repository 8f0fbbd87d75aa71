"""Layers folded into records: which vectors count, where they come from, and what they add up to.

On a GPU the vectors of several sites of a small batch are held and folded at once, since a small batch costs
its launches and not its arithmetic. How vectors lie in their sequences is kept from batch to batch, for those
that are cut alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from isoscope.data.batch import Batch
from isoscope.data.counting import Counted, select_counted
from isoscope.kernels.cloud.chunks import sent
from isoscope.kernels.cloud.totals import fused
from isoscope.models.survey import Survey
from isoscope.run.observe.memory import Plan
from isoscope.run.observe.together import AT_ONCE, Together
from isoscope.sites import Site
from isoscope.stats.base import Stat
from isoscope.stats.places import Layout
from isoscope.stats.seen import Places, Vectors, home

Keep = Callable[[Sequence[Site], type[Stat], Stat], None]
MOST_CUTS = 16  # that are kept: sequences of every length may come, and a cut takes some megabytes


@dataclass(frozen=True, eq=False)
class _Cut:
    """Which vectors of a site count, and how they lie: the same for every batch of which the same counts."""

    counts: Tensor | None
    counted: Counted
    near: Counted  # the same on the CPU
    layout: Layout


class Layers:
    """Folds what flows at layers. Records go to `keep`: those of several sites have an axis of sites."""

    def __init__(self, kept: Plan, found: Survey, keep: Keep, covariance_rows: float) -> None:
        self.found, self.keep, self.stats, self.parts = found, keep, kept.stats, kept.parts
        self._covariance_rows = covariance_rows
        self._by_dimension = any(getattr(stat, "by_dimension", False) for stat in kept.stats)
        self._cuts: dict[Any, _Cut] = {}
        self._here: dict[Any, tuple[Counted, Places]] = {}  # of the batch that is running
        self._together = Together[Site](self._fold)

    def add(self, site: Site, seen: Tensor, batch: Batch) -> str:
        """Fold what one site shows of a batch; gives a remark."""
        if not self.stats:
            return ""
        if seen.dim() > 3:  # a feature map has no tokens before its positions
            batch = replace(batch, patches=None)
        flow = self.found.vectors(site, seen)
        counted, places = self._places(flow, batch, decoder=site in self.found.decoder)
        vectors = counted.of(flow).to(home(flow.device))
        self._together.add(site, {"vectors": vectors}, id(places), places, self._room(vectors, places))
        return counted.remark

    def finish(self) -> None:
        """The batch is done."""
        self._together.flush()
        self._here.clear()

    def _room(self, vectors: Tensor, places: Places) -> int:
        """How many sites like this one are folded at once."""
        if not fused(vectors) or places.chunks is None:
            return 1
        records = sum(stat.size(vectors.shape[1], self.parts) for stat in self.stats)
        return min(len(self.found.shapes), AT_ONCE // max(1, vectors.nbytes + records))

    def _fold(self, sites: list[Site], tensors: dict[str, Tensor], places: Places) -> None:
        seen = Vectors.at(tensors["vectors"], places, by_dimension=self._by_dimension)
        for stat in self.stats:
            self.keep(sites, stat, stat.of(seen, self.parts))

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
            places = Places(cut.layout, batch.keys.cpu(), token, self._covariance_rows, batch.units)
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
