"""One checkpoint weighed by its weights and a pass over text: vocabularies, final norm, frequency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pandas as pd
from torch import Tensor

from isoscope.data.batch import as_batch
from isoscope.models.entering import entering
from isoscope.models.source import Model
from isoscope.models.tap import at_rest
from isoscope.models.weights import Norm, Vocabulary, Weights
from isoscope.papers.machina2024.frequency import Gradient, along_drift, bands
from isoscope.results.points import Points, points_frame
from isoscope.results.reading import Reading
from isoscope.results.row import Row, frame
from isoscope.run.observe.observe import look
from isoscope.run.weigh.final_norm import FinalNorm
from isoscope.run.weigh.frequency import added_counts, frequency_readings, token_counts
from isoscope.run.weigh.vocabulary import weigh_vocabulary

INPUT, OUTPUT, TIED = "input_vocabulary", "output_vocabulary", "tied_vocabulary"
OUTPUTS = (OUTPUT, TIED)  # the matrix that answers are read by, tied or not: a model has one of them
I_OWN, I_UNIT = "partition_isotropy", "partition_isotropy_unit"
GRADIENT = "output_gradient"
OF_MATRIX = (
    "partition_isotropy", "partition_isotropy_unit", "partition_isotropy_one_sign",
    "partition_isotropy_float32", "partition_isotropy_first", "partition_isotropy_second",
    "mean_cosine", "relative_drift", "isoscore", "mean_norm", "singular_entropy",
)  # fmt: skip
OF_STAGE = (
    "mean_cosine", "mean_cosine_between", "drift", "relative_drift", "isoscore", "partition_isotropy"
)  # fmt: skip
ALONG = "gradient_along_drift"
PARAMETERS = "parameters"  # of what runs: a public model is run without its vocabulary head


@dataclass(frozen=True, eq=False)
class Weighed:
    """Rows and points of one checkpoint; who it is of is for the caller to say."""

    rows: pd.DataFrame
    points: pd.DataFrame


def weigh_checkpoint(
    model: Model, weights: Weights, batches: Iterable[object],
    *, counts: Tensor | None = None, edits: Mapping[str, Norm] | None = None
) -> Weighed:  # fmt: skip
    """Weigh one checkpoint over batches of tokens; `counts` [|V|] of all data where more is known of it."""
    sides = vocabularies(weights)
    output = sides.get(TIED) or sides.get(OUTPUT)
    gradient = None if output is None else Gradient(output.matrix, output.bias)
    norm, own = _pass(model, weights, batches, gradient, edits)
    counts = own if counts is None else counts
    size = sum(weight.numel() for weight in model.module.parameters())
    rows = _rows("model", {PARAMETERS: Reading(float(size), 1)})
    points: list[Points] = []
    for kind, found in sides.items():
        for form in weigh_vocabulary(kind, lambda held=found: held.matrix, seed=0, tick=lambda: None):  # type: ignore[misc]
            rows += _rows(form.kind, {name: form.readings[name] for name in OF_MATRIX})
            points += form.picture
        if counts is not None:
            rows += _rows(kind, {**bands(found.matrix, counts), **frequency_readings(found.matrix, counts)})
    if output is not None and gradient is not None and gradient.count and counts is not None:
        along = Reading(along_drift(gradient.mean, output.matrix), gradient.count)
        rows += _rows(GRADIENT, {**bands(gradient.mean, counts), ALONG: along})
    if norm is not None:
        seen = norm.observation("", "", None)
        rows += [] if seen is None else [row for row in seen.rows() if row.measure in OF_STAGE]
        rows += _rows("norm", norm.readings())
    return Weighed(frame(rows), points_frame(points))


def vocabularies(weights: Weights) -> dict[str, Vocabulary]:
    """The vocabulary matrices by kind: input and output, or the one that is both."""
    entry, leave = weights.vocabulary("input"), weights.vocabulary("output")
    if entry is None:
        return {} if leave is None else {OUTPUT: leave}
    if leave is None or leave.tied:
        return {TIED: entry if leave is None else replace(entry, bias=leave.bias)}
    return {INPUT: entry, OUTPUT: leave}


def _pass(
    model: Model, weights: Weights, batches: Iterable[object], gradient: Gradient | None,
    edits: Mapping[str, Norm] | None
) -> tuple[FinalNorm | None, Tensor | None]:  # fmt: skip
    """Run the model over the batches: what its final norm does, the gradient of its output, its tokens."""
    known, found = weights.final_norm(), None
    norm: FinalNorm | None = None
    counts: Tensor | None = None
    states: list[Tensor] = []

    def leaves(name: str, call: int, taken: Tensor, given: Tensor) -> None:
        if norm is not None:
            norm.passes(taken, given)
        states[:] = [given]

    device = next(model.module.parameters()).device
    for item in batches:
        if found is None:
            found = look(model, item)
            norm = None if known is None else FinalNorm(known, edits, found)
        batch = as_batch(item, seed=0, batch_axis=found.input_axis).to(device)
        with at_rest(model.module), entering(model.module, [known.name] if known else [], leaves):
            batch.call(model.module)
            if norm is not None:
                norm.fold(batch)
            tokens = batch.tokens(batch_axis=found.input_axis)
            if gradient is not None and tokens is not None and states:
                hidden = states[0].transpose(0, 1) if found.flow_axis == 1 else states[0]
                if hidden.dim() == 3 and hidden.shape[:2] == tokens.shape:
                    place = gradient.matrix.device
                    gradient.add(hidden.to(place), tokens.to(place))
        counts = added_counts(counts, token_counts(batch, found.input_axis))
    return norm, counts


def _rows(kind: str, readings: Mapping[str, Reading]) -> list[Row]:
    at = ("", "", "", None, kind, None, None)
    return [Row.at(*at, measure, reading) for measure, reading in readings.items()]
