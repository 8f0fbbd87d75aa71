"""Weigh a model: what its weights alone say, without running it, and with data what they do on it.

Queries and keys of every head, the vocabulary matrices, the final norm; one layer in memory at a time. A part
that cannot be read becomes a remark; only where nothing can be read is it an error. With data the model runs,
and its weights are read from the address all the same: what is loaded to run has no vocabulary head.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from torch import Tensor, nn

from isoscope.errors import IsoscopeError, first_line
from isoscope.measures.table import of_weights
from isoscope.models.inputs import open_data
from isoscope.models.source import Model, load
from isoscope.models.weights import SIDES, Weights, open_weights
from isoscope.models.weights.files import Fault, told_together
from isoscope.results.points import Points
from isoscope.results.reading import Reading
from isoscope.run.telling import Progress
from isoscope.run.weigh.data import data_part
from isoscope.run.weigh.heads import HeadsWeighed, head_points, weigh_heads
from isoscope.run.weigh.vocabulary import vocabulary_measures, weigh_vocabulary
from isoscope.run.weigh.weighed import UNREADABLE, Findings, Weighed
from isoscope.sites import FORMS, Site
from isoscope.stats.weights import NormWeights

_COUNTS = frozenset(measure.name for measure in vocabulary_measures() if measure.family == "health")


def weigh(
    model: str | Model | nn.Module,
    *,
    revision: str | None = None,
    config: str | None = None,
    query: str | None = None,
    key: str | None = None,
    length: int = 512,
    data: str | Iterable[Any] | None = None,
    running: Model | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Weighed:
    """Read what a model's weights say: a folder, a hub id, a file of weights or a live module.

    `length` is the number of positions T for regimes and ρ(t). `query` and `key` are regular expressions for
    the weights of an unknown architecture, with a group for the layer's number. With `data` (an address, or
    batches) the model runs over it too: `running`, or else loaded for it. `progress` is called with (parts
    done, parts in all), then with (sequences done, sequences in all).
    """
    if length < 2:
        raise IsoscopeError(f"length is the number of positions, at least 2; it is {length}.")
    weights = open_weights(model, revision=revision, config=config, query=query, key=key, whole=False)
    told = _Told(weights.model, weights.revision, weights=weights, progress=progress)
    told.parts = len(set(weights.sites)) + len(FORMS) * len(SIDES) + 1
    heads = _heads(told, length, seed)
    _vocabulary(told, seed)
    _norm(told)
    lost = weights.opened.tensors.faults()
    if told.rows and not any(row.measure not in _COUNTS and row.known for row in told.rows):
        raise _nothing(weights, ["every number in it that is weighed is NaN or Inf"], lost)
    told.series[:0] = head_points(heads)
    if data is not None:
        source = running or _running(model, weights.revision or revision, config)
        batches = open_data(data, source, seed=seed) if isinstance(data, str) else data
        part = data_part(
            source, weights, batches, length=length, seed=seed, query=query, key=key, progress=progress
        )
        _tell_data(told, part)
    if not told.rows:
        raise _nothing(weights, told.remarks, lost)
    rest = [fault for fault in lost if not any(_says(remark, fault) for remark in told.remarks)]
    if rest:  # shards that cannot be had, and that no remark tells of yet
        it = "it" if len(rest) == 1 else "them"
        told.remarks.append(f"{told_together(rest)}; no reading is lost by {it}")
    facts = {"model": weights.model, "revision": weights.revision, "length": length, **told.facts}
    remarks = tuple(dict.fromkeys((*weights.remarks, *told.remarks)))
    return Weighed(weights.model, weights.revision, tuple(told.rows), told.points, facts, remarks)


def _nothing(weights: Weights, remarks: Iterable[str], lost: Iterable[Fault]) -> IsoscopeError:
    """That nothing can be weighed, and why: of shards that cannot be had not one by one."""
    others = [remark for remark in remarks if not any(_says(remark, fault) for fault in lost)]
    why = "; ".join(filter(None, [told_together(lost), *others]))
    return IsoscopeError(f"nothing of '{weights.model}' can be weighed: {why}.")


def _says(remark: str, fault: Fault) -> bool:
    return fault.sentence.rstrip(".") in remark


@dataclass(eq=False, kw_only=True)
class _Told(Findings):
    """What is found of the weights so far, and how many parts of them are done."""

    weights: Weights
    progress: Progress | None
    parts: int = 0
    done: int = 0
    vocabulary_mean: Tensor | None = None

    def tick(self, parts: int = 1) -> None:
        self.done += parts
        if self.progress is not None:
            self.progress(self.done, self.parts)


def _heads(told: _Told, length: int, seed: int) -> list[HeadsWeighed]:
    said: dict[str, list[Site]] = defaultdict(list)
    found = []
    measures = of_weights("query_key")
    for each in weigh_heads(told.weights, length, seed, lambda site, why: said[why].append(site)):
        told.tick()
        if each is None:
            continue
        found.append(each)
        for remark in each.remarks:
            said[remark].append(each.site)
        for measure in measures:
            told.add(each.site, measure.name, *cast(tuple[Reading, ...], measure.read(each.record)))
    told.remarks += [f"{_span(sites)}: {remark}" for remark, sites in said.items()]
    if not told.weights.steps:
        told.remarks.append("query_key: no weights of queries and keys are known by name in it")
    told.facts["heads"] = sum(len(each.record.width) for each in found)
    return found


def _vocabulary(told: _Told, seed: int) -> None:
    weights = told.weights
    for side in SIDES:
        kind, before = f"{side}_vocabulary", told.done
        try:
            why = weights.absent(side)
            found = None if why else weights.vocabulary(side)
            if found is not None and side == "output" and found.tied and "input_vocabulary" in told.facts:
                why, found = "tied: the output is the same matrix", None
            if found is None:
                told.remarks.append(f"{kind}: {why}")
            else:
                held, told.facts[kind] = [found.matrix], list(found.matrix.shape)
                told.remarks += [f"{kind}: {remark}" for remark in found.remarks]
                reads = side == "output" or found.tied
                del found
                _forms(told, kind, held, seed, reads=reads)
        except UNREADABLE as reason:
            told.remarks.append(f"{kind}: {first_line(reason)}")
        if rest := before + len(FORMS) - told.done:
            told.tick(rest)


def _forms(told: _Told, kind: str, held: list[Tensor], seed: int, *, reads: bool) -> None:
    """One matrix in all its forms, taken out of `held`; `reads` where it reads the final norm's output."""
    if len(held[0]) < 2:
        raise IsoscopeError(f"it has {len(held[0])} rows, and a cloud needs 2")
    for form in weigh_vocabulary(kind, held.pop, seed=seed, tick=told.tick):
        for name, reading in form.readings.items():
            told.add(Site(form.kind), name, reading)
        told.series += form.picture
        lost = form.readings["not_finite"]
        if form.kind == kind and lost.value:
            told.remarks.append(f"{kind}: {lost.value:.0f} of {lost.n} rows hold NaN or Inf and are left out")
        if reads and form.kind == kind:
            told.vocabulary_mean = form.mean


def _norm(told: _Told) -> None:
    try:
        norm = told.weights.final_norm()
        if norm is None:
            told.remarks.append("norm: no final norm with weights is known")
            return
        why = told.weights.absent("output") or "the output vocabulary could not be read"
        record = NormWeights(norm.weight, norm.bias, told.vocabulary_mean, why)
        for measure in of_weights("norm"):
            told.add(Site("norm"), measure.name, cast(Reading, measure.read(record)))
        told.facts["final_norm"] = {"name": norm.name, "kind": norm.kind, "place": norm.place}
    except UNREADABLE as reason:
        told.remarks.append(f"norm: {first_line(reason)}")
    finally:
        told.tick()


def _tell_data(told: _Told, part: Findings) -> None:
    """Add what data says; of a head whose ρ(t) is told with data, that one is drawn."""

    def place(one: Points) -> tuple[object, ...]:
        return one.picture, one.kind, one.layer, one.head

    known = {place(one) for one in part.series}
    told.series = [one for one in told.series if one.picture != "propagation" or place(one) not in known]
    told.series += part.series
    told.rows += part.rows
    told.remarks += part.remarks
    told.facts["on_data"] = part.facts


def _running(model: str | Model | nn.Module, revision: str | None, config: str | None) -> Model:
    if isinstance(model, str):
        return load(model, revision=revision, config=config)
    return model if isinstance(model, Model) else Model(model, type(model).__name__)


def _span(sites: list[Site]) -> str:
    """Sites in few words.

    >>> _span([Site("query_key", 1), Site("query_key", 2), Site("query_key", 3), Site("query_key", 7)])
    'query_key.1 to query_key.3, query_key.7'
    """
    runs: list[list[Site]] = []
    for site in dict.fromkeys(sites):
        last = runs[-1][-1] if runs else None
        if last is not None and last.layer is not None and site == Site(last.kind, last.layer + 1):
            runs[-1].append(site)
        else:
            runs.append([site])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
