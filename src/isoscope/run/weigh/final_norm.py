"""The final norm while the model runs, in its last call: folded into stages, and compared with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor

from isoscope.data.batch import Batch
from isoscope.data.counting import select_counted
from isoscope.errors import IsoscopeError
from isoscope.measures.table import choose
from isoscope.models.survey import Survey
from isoscope.models.weights import Norm
from isoscope.results.reading import Reading
from isoscope.run.observe.observation import Observation
from isoscope.run.weigh.norm_stages import (
    OF_STAGES,
    OUTPUT,
    SCALED,
    NormRecords,
    bias_cancels,
    drift_removed_by_bias,
    stages,
    standardised,
)
from isoscope.sites import Site
from isoscope.stats.centre import Centre
from isoscope.stats.seen import Places, home


class FinalNorm:
    """Records of the stages of one norm, batch after batch."""

    def __init__(self, norm: Norm, edits: Mapping[str, Norm] | None, found: Survey) -> None:
        self.norm, self.found = norm, found
        self.changes = stages(norm, edits)
        self.records: NormRecords | None = None
        self.apart = 0.0  # the most that weights and model differ, in units of the output's mean square
        self.failed = ""
        self._remarks: dict[str, None] = {}
        self._latest: tuple[Tensor, Tensor] | None = None

    def passes(self, taken: Tensor, given: Tensor) -> None:
        """Keep what enters and what leaves in the latest call."""
        self._latest = taken, given

    def fold(self, batch: Batch) -> None:
        """One batch, once the model has run over it."""
        latest, self._latest = self._latest, None
        if latest is None or self.failed:
            return
        try:
            self._fold(self._flow(latest[0]), self._flow(latest[1]), batch)
        except IsoscopeError as reason:
            self.failed = str(reason)

    def _flow(self, seen: Tensor) -> Tensor:
        """[b, t, d], or [b, d]."""
        seen = seen.to(home(seen.device))
        if seen.dim() == 3 and self.found.flow_axis == 1:
            return seen.transpose(0, 1)
        return seen.flatten(1, -2) if seen.dim() > 3 else seen

    def _fold(self, taken: Tensor, given: Tensor, batch: Batch) -> None:
        decoder = Site("output") in self.found.decoder
        tokens = batch.tokens(decoder=decoder, batch_axis=self.found.input_axis)
        counted = select_counted(taken.shape, batch, decoder=decoder, tokens=tokens)
        if counted.remark:
            self._remarks[counted.remark] = None
        mine = counted.to(taken.device)
        points = mine.of(taken)
        places = Places.of(
            len(points),
            counted.sequence,
            batch.keys,
            position=counted.position,
            token=counted.token,
            units=batch.units,
            device=points.device,
        )
        new = NormRecords.of(self.norm, self.changes, points, places)
        self.records = new if self.records is None else self.records.merge(new)
        self._compare(points, mine.of(given))

    def _compare(self, taken: Tensor, given: Tensor) -> None:
        """Whether γ and β as they were read give what the model gives, to the rounding of its numbers."""
        own = self.changes[OUTPUT].of(standardised(self.norm, taken))
        apart = (own - given.double()).abs()
        apart = apart[apart.isfinite().all(1)]
        if len(apart):
            size = float(own[own.isfinite().all(1)].square().mean().sqrt())
            self.apart = max(self.apart, float(apart.max()) / size if size else 0.0)
        if self.apart > 1e-5 + 8 * torch.finfo(given.dtype).eps:
            told = "what leaves it in the model is not γ⊙x̂ + β as read: the stages are of the weights"
            self._remarks[told] = None

    def observation(self, model: str, revision: str, step: int | None) -> Observation | None:
        """The stages as sites, with the measures that are shown of them; None where it never ran."""
        if self.records is None:
            return None
        records = {Site(kind): held for kind, held in self.records.whole(self.changes).items()}
        return Observation(records, choose(OF_STAGES), model, revision, step)

    def readings(self) -> dict[str, Reading]:
        """What β does to the drift."""
        if self.records is None:
            return {}
        scaled = cast("Centre", self.records.held[SCALED][Centre])
        return {
            "bias_cancels": bias_cancels(scaled, self.norm.bias),
            "drift_removed_by_bias": drift_removed_by_bias(scaled, self.norm.bias),
        }

    def remarks(self) -> list[str]:
        """What a reader must know."""
        told = [*self._remarks, *filter(None, [self.failed])]
        if self.records is None and not self.failed:
            told.append("the module was not found in the running model, or did not run")
        if self.norm.bias is None:
            told.append("it has no bias, so there is none to take away")
        return [f"final norm {self.norm.name}: {one}" for one in told]
