"""Layers folded into records: which vectors count, where they come from, and what they add up to.

Records of sums (`of_sums`) are made of all sites of a batch at once where vectors are on a GPU: that costs
as much as for one site, and nothing waits for the device in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import Tensor

from isoscope.data.batch import Batch
from isoscope.data.counting import Counted, select_counted
from isoscope.kernels.cloud import CloudSums, OfChunks, joined
from isoscope.models.survey import Survey
from isoscope.run.memory import Plan
from isoscope.sites import Site
from isoscope.stats.base import Stat, unstacked
from isoscope.stats.seen import Places, Summed, Vectors, home

Keep = Callable[[Site, type[Stat], Stat], None]


class Layers:
    """Folds what flows at layers, and hands every record of a batch to `keep`."""

    def __init__(self, kept: Plan, found: Survey, keep: Keep, covariance_rows: float) -> None:
        self.found, self.keep, self._covariance_rows = found, keep, covariance_rows
        self._parts = kept.parts
        self._of_sums = [stat for stat in kept.stats if getattr(stat, "of_sums", False)]
        self._others = [stat for stat in kept.stats if stat not in self._of_sums]
        self._layouts: dict[Any, tuple[Counted, Places]] = {}  # of the batch that is running
        self._waiting: dict[Any, tuple[Places, list[tuple[Site, CloudSums | OfChunks]]]] = {}

    def add(self, site: Site, seen: Tensor, batch: Batch) -> str:
        """Fold what one site shows of a batch; gives a remark."""
        if seen.dim() > 3:  # a feature map has no tokens before its positions
            batch = replace(batch, patches=None)
        flow = self.found.vectors(site, seen)
        counted, places = self._places(flow, batch, decoder=site in self.found.decoder)
        vectors = Vectors.at(counted.of(flow), places)
        for stat in self._others:
            self.keep(site, stat, stat.of(vectors, self._parts))
        if self._of_sums:
            _, waiting = self._waiting.setdefault((id(places), vectors.width), (places, []))
            waiting.append((site, vectors.unjoined))
            if not vectors.points.is_cuda:
                self._join()
        return counted.remark

    def finish(self) -> None:
        """The batch is done."""
        self._join()
        self._layouts.clear()

    def _join(self) -> None:
        for places, found in self._waiting.values():
            seen = Summed(joined([sums for _, sums in found]), places)
            for stat in self._of_sums:
                for (site, _), record in zip(found, unstacked(stat.of(seen), len(found)), strict=True):
                    self.keep(site, stat, record)
        self._waiting.clear()

    def _places(self, flow: Tensor, batch: Batch, *, decoder: bool) -> tuple[Counted, Places]:
        """Which vectors count of what flows, and where they come from: worked out once a batch and shape."""
        kind = (tuple(flow.shape[:-1]), decoder, batch.patches)
        if kind not in self._layouts:
            tokens = batch.tokens(decoder=decoder, batch_axis=self.found.input_axis)
            counted = select_counted(flow.shape, batch, decoder=decoder, tokens=tokens)
            places = Places.of(
                len(counted.sequence),
                counted.sequence,
                batch.keys,
                position=counted.position,
                token=counted.token,
                device=home(flow.device),
                share=self._covariance_rows,
            )
            self._layouts[kind] = counted.to(flow.device), places
        return self._layouts[kind]
