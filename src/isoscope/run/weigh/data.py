"""What one pass over data adds to weights: stages of the final norm, where attention falls, frequency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress

from torch import Tensor

from isoscope.data.batch import Batch, as_batch
from isoscope.data.source import Data
from isoscope.errors import IsoscopeError
from isoscope.models.attention.tap import attention_tap
from isoscope.models.entering import entering
from isoscope.models.source import Model
from isoscope.models.survey import Survey
from isoscope.models.tap import at_rest
from isoscope.models.weights import Norm, Weights, open_weights
from isoscope.run.observe.memory import DEFAULT
from isoscope.run.observe.observe import look
from isoscope.run.telling import Progress
from isoscope.run.weigh.final_norm import FinalNorm
from isoscope.run.weigh.frequency import added_counts, frequency_readings, token_counts
from isoscope.run.weigh.localisation import KIND, Localised, localised, pictures, walk_remark
from isoscope.run.weigh.looking import Localiser
from isoscope.run.weigh.weighed import Findings
from isoscope.sites import Site


def data_part(
    source: Model,
    weights: Weights,
    batches: Iterable[object],
    *,
    length: int = 512,
    seed: int = 0,
    memory: float = DEFAULT,
    edits: Mapping[str, Norm] | None = None,
    query: str | None = None,
    key: str | None = None,
    progress: Progress | None = None,
) -> Findings:
    """Run the model over the batches once, and read what its weights alone do not say.

    `length` bounds the walk that is predicted: as many positions as last queries see keys, at most so many.
    `edits` are norms by name, whose γ and β stand in for the final norm's own. `query` and `key` name weights
    as in `weigh`. `memory` bounds the bytes of records of increments. `progress` is called with (sequences
    done, sequences in all).
    """
    running = weights
    if weights.opened.tensors.module is None:  # a file may spell names otherwise than the running model
        with suppress(IsoscopeError):
            found = open_weights(source, query=query, key=key)
            running = found if found.steps else weights
    total = batches.size if isinstance(batches, Data) else None
    gathered: _Pass | None = None
    done = 0
    for item in batches:
        if gathered is None:
            gathered = _Pass(source, running, look(source, item), memory, edits)
        batch = _ready(item, source, gathered.found, seed)
        gathered.fold(batch)
        done += len(batch)
        if progress is not None:
            progress(done, total)
    if gathered is None:
        raise IsoscopeError("the data holds no batch; there is nothing to measure.")
    told = Findings(weights.model, weights.revision, source.step)
    _tell_norm(told, gathered)
    _tell_localisation(told, gathered, running, length, seed)
    _tell_frequency(told, gathered, weights)
    told.facts["sequences"] = done
    return told


class _Pass:
    """One pass over the data: what is gathered for each part."""

    def __init__(
        self, source: Model, running: Weights, found: Survey, memory: float, edits: Mapping[str, Norm] | None
    ) -> None:
        self.module, self.found = source.module, found
        self.localiser = Localiser(running.steps, found, memory)
        norm = running.final_norm()
        self.norm = None if norm is None else FinalNorm(norm, edits, found)
        self.counts: Tensor | None = None

    def fold(self, batch: Batch) -> None:
        """Run the model over one batch."""

        def enters(name: str, call: int, taken: Tensor, given: Tensor) -> None:
            if self.norm is not None and name == self.norm.norm.name:
                self.norm.passes(taken, given)
            self.localiser.enters(name, call, taken)

        self.localiser.start(batch)
        own, found = () if self.norm is None else (self.norm.norm.name,), self.found
        with at_rest(self.module), ExitStack() as taps:
            taps.enter_context(entering(self.module, (*self.localiser.names, *own), enters))
            if not found.unseen:
                attends = self.localiser.attends
                taps.enter_context(attention_tap(self.module, found.blocks, attends, takes=found.takes))
            batch.call(self.module)
        if self.norm is not None:
            self.norm.fold(batch)
        self.counts = added_counts(self.counts, token_counts(batch, found.input_axis))


def _tell_norm(told: Findings, gathered: _Pass) -> None:
    norm = gathered.norm
    if norm is None:
        told.remarks.append("no final norm with weights is known, so it has no stages")
        return
    seen = norm.observation(told.model, told.revision, told.step)
    if seen is not None:
        told.rows += seen.rows()
        told.facts["final norm"] = {"name": norm.norm.name, "kind": norm.norm.kind, "apart": norm.apart}
    for measure, reading in norm.readings().items():
        told.add(Site("norm"), measure, reading)
    told.remarks += norm.remarks()


def _tell_localisation(told: Findings, gathered: _Pass, running: Weights, length: int, seed: int) -> None:
    localiser = gathered.localiser
    found: list[Localised] = []
    told.localisation += localiser.remarks()
    for projections in running.projections() if running.steps else ():
        if projections.site in {one.site for one in found} or projections.site.kind != "attention":
            continue
        one = localised(localiser, projections, length=length, seed=seed)
        if one is not None:
            found.append(one)
            told.localisation += [f"localisation: {one.site}: {one.remark}"] if one.remark else []
            for measure, readings in one.readings.items():
                told.add(Site(KIND, one.site.layer), measure, *readings)
    if not found:
        told.localisation.append(
            "localisation: no attention whose queries and keys are known was seen to run"
        )
    told.remarks += told.localisation
    if not found:
        return
    told.remarks += walk_remark(found)
    drawn, left = pictures(found)
    told.series += drawn
    told.remarks += [left] if left else []
    keys = [one.predicted.length for one in found if one.predicted is not None]
    after = [one.profiles for one in found if one.profiles is not None]
    told.facts["localisation"] = {
        "positions": max(keys, default=0),
        "after the last query": max((float((one.after / one.rows).mean()) for one in after), default=0.0),
    }


def _tell_frequency(told: Findings, gathered: _Pass, weights: Weights) -> None:
    counts = gathered.counts
    if counts is None:
        told.remarks.append("the data has no tokens, so their frequency says nothing of a vocabulary")
        return
    told.facts["token types"] = int((counts > 0).sum())
    for side in ("input", "output"):
        found = weights.vocabulary(side)
        if found is None or (side == "output" and found.tied):
            continue
        kind, beyond = f"{side}_vocabulary", int(counts[len(found.matrix) :].sum())
        if beyond:
            told.remarks.append(f"{kind}: {beyond} tokens of the data have no row in it")
        for measure, reading in frequency_readings(found.matrix, counts).items():
            told.add(Site(kind), measure, reading)


def _ready(item: object, source: Model, found: Survey, seed: int) -> Batch:
    """A batch where the model is; pictures and sound that isoscope read, in the model's own precision."""
    batch = as_batch(item, seed=seed, batch_axis=found.input_axis)
    weight = next(source.module.parameters(), None)
    if weight is None:
        return batch
    return (batch.as_floats(weight.dtype) if isinstance(item, Batch) else batch).to(weight.device)
