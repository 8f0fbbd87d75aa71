"""Observe a model over data in one streamed pass, or describe a cloud of points.

Each tensor is folded into its site's records the moment it is seen; no activation is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isoscope.data.batch import Batch, as_batch
from isoscope.data.counting import Counting
from isoscope.data.keys import content_keys, dealt_units, plain_labels, unit_keys
from isoscope.data.source import Data
from isoscope.errors import IsoscopeError
from isoscope.measures.base import Measure
from isoscope.measures.table import choose
from isoscope.models import survey as surveys
from isoscope.models.attention.tap import looked_for
from isoscope.models.inputs import open_data
from isoscope.models.source import Model, load
from isoscope.models.survey import Survey, sequence_first
from isoscope.run.observe.fold import OF_ATTENTION, SEQUENCES, Folder, joined, smallest_keys
from isoscope.run.observe.memory import DEFAULT, plan
from isoscope.run.observe.observation import Observation
from isoscope.sites import ATTENTION, Site, select
from isoscope.stats.base import Stat
from isoscope.stats.centre import Centre
from isoscope.stats.directions import Directions
from isoscope.stats.places import hash_of_inputs
from isoscope.stats.rows import Rows
from isoscope.stats.seen import Vectors

Progress = Callable[[int, int | None], None]
SURVEYED = 64  # tokens of a sequence on which a model is surveyed


def observe(
    model: str | Model | nn.Module,
    data: str | Iterable[Any] = "embedded",
    *,
    measures: str | Iterable[str] | None = None,
    layers: str = "*",
    heads: bool = False,
    counterfactual: bool = True,
    seed: int = 0,
    memory: float = DEFAULT,
    covariance_rows: float = 1.0,
    skip_first: bool | None = None,
    skip_special: bool | None = None,
    groups: Sequence[Any] | None = None,
    progress: Progress | None = None,
    survey: Survey | None = None,
) -> Observation:
    """Measure a model's representations and its attention over data, exactly, in one pass.

    `model` is an address (hub id or folder), what `load` returned, or any live module. `data` is an address
    of text, what `text` returned, or batches: tensors, mappings of tensors, or `Batch`. `measures` are names;
    "all" adds the measures that cost more than the default ones together. `layers` selects sites by glob
    (``"layer.*"``, ``"0,6,12"``, ``"attention.*"``). `heads` adds rows for every head. `counterfactual` reads
    attention once more, on at most 64 sequences, without each head's mean query. `memory` bounds the bytes
    that records may take; covariances are made of the share `covariance_rows` of the vectors, chosen by a
    hash of their places. Position 0 and special tokens are left out wherever they are known;
    `skip_first=False` and `skip_special=False` count them. `groups` are labels of what the sequences were cut
    from (document, speaker), one per sequence in the order of the batches; a batch that is a mapping may
    carry them in its entry ``groups``. Sequences of one group are not taken for independent. `progress` is
    called with (sequences done, sequences in total). `survey` is what `look` found in the model, if it was
    called before.
    """
    choose(measures)  # a name that does not exist is told before anything runs
    if not 0 < covariance_rows <= 1:
        raise IsoscopeError(
            f"covariance_rows is a share of the vectors, above 0 and at most 1; got {covariance_rows}."
        )
    source = _as_model(model)
    batches = as_batches(data, source, seed, skip_first=skip_first, skip_special=skip_special)
    if groups is not None and isinstance(batches, Data):
        raise IsoscopeError(
            "groups= is for batches of your own; data from an address has its documents for groups."
        )
    total = batches.size if isinstance(batches, Data) else None
    items = iter(batches)
    start = next(items, None)
    if start is None:
        raise IsoscopeError("the data holds no batch; there is nothing to measure.")
    found = look(source, start) if survey is None else survey
    axis = found.input_axis
    sites = select((*found.shapes, *found.attention), layers)
    chosen = choose(measures, offered_by(as_batch(start, seed=seed, batch_axis=axis), sites, counterfactual))
    refuse_without_attention(chosen, found, measures)
    refuse_nothing(chosen, sites, layers)
    folder = _folder(sites, chosen, found, memory, covariance_rows)
    counting = counting_of(source, skip_first=skip_first, skip_special=skip_special)
    ready: Iterator[Batch] = (
        _ready(item, source.module, seed=seed, batch_axis=axis, counting=counting)
        for item in chain([start], items)
    )
    ready = ready if groups is None else in_groups(ready, groups)
    held: list[Batch] = []
    done = 0
    with folder.attached(source.module):
        for batch in joined(ready, folder.room, axis):
            folder.fold(source.module, batch)
            if folder.counterfactual:
                held = smallest_keys([*held, batch], SEQUENCES, axis)
            done += len(batch)
            again = sum(map(len, held))
            if progress is not None:
                progress(done, None if total is None else total + again)
    if folder.counterfactual:
        for batch in folder.fold_counterfactual(source.module, held):
            done += len(batch)
            if progress is not None:
                progress(done, None if total is None else total + again)
    said, left_out = told_counting(batches, start, counting, axis)
    about_data: dict[str, object] = {} if said is None else {"counting": said}
    if groups is not None:
        about_data["units"] = {"unit": "group", "number": len(set(plain_labels(groups)))}
    if isinstance(batches, Data):
        about_data = batches.facts()
    blocks = {str(site): block for site, block in folder.found.leaves.items()}
    return Observation(
        records=folder.records,
        measures=chosen,
        model=source.name,
        revision=source.revision,
        step=source.step,
        facts={**source.facts(), **about_data, "blocks": blocks, **folder.facts},
        remarks=(*source.notes, *left_out, *folder.remarks(), *filter(None, [folder.found.unseen])),
        not_kept=folder.kept.not_kept,
        heads=heads,
        inputs=folder.inputs,
    )


def _folder(
    sites: tuple[Site, ...], chosen: Iterable[Measure], found: Survey, memory: float, covariance_rows: float
) -> Folder:
    stats = stats_of(chosen)
    widths = [found.width(site) for site in sites if site in found.shapes]
    kept = plan(widths, [stat for stat in stats if stat not in OF_ATTENTION], memory)
    attention = tuple(stat for stat in stats if stat in OF_ATTENTION)
    return Folder(sites, kept, attention, found, covariance_rows)


def refuse_without_attention(
    chosen: Iterable[Measure], found: Survey, asked: str | Iterable[str] | None
) -> None:
    """Say that measures of attention were asked for of a model that shows none."""
    named = [measure.name for measure in chosen if measure.at == "attention"]
    if asked is not None and named and not found.attention:
        why = found.unseen or f"no attention was seen ({looked_for})."
        raise IsoscopeError(f"{', '.join(named)} needs attention: {why}")


def refuse_nothing(chosen: Iterable[Measure], sites: tuple[Site, ...], layers: str) -> None:
    """Measures of which none can be read where it was asked for are an error, not an empty table."""
    attention = any(site.kind in ATTENTION for site in sites)
    flat = [site for site in sites if site.kind not in ATTENTION]
    able = [
        attention if measure.at == "attention" else len(flat) > (1 if measure.against else 0)
        for measure in chosen
    ]
    if not any(able):
        names = ", ".join(measure.name for measure in chosen)
        raise IsoscopeError(f"{names} cannot be read at '{layers}': choose other measures or layers.")


def look(source: Model, item: object) -> Survey:
    """Survey a model on a first batch: on the front of one sequence where it is known how to cut one."""
    alone = isinstance(item, Batch | Tensor) and not sequence_first(source.module)
    if isinstance(item, Tensor) and not alone and item.shape[0] == item.shape[1] > 1:
        item = item[1:]  # as many sequences as positions: one fewer tells the two apart
    batch = _ready(item, source.module, seed=0, batch_axis=0)
    if not alone:
        return surveys.survey(source.module, batch)
    batch = batch.first()
    few = _front(batch)
    if few is not None:
        with suppress(IsoscopeError):  # a model that takes no fewer tokens is surveyed on all of them
            return surveys.survey(source.module, few)
    return surveys.survey(source.module, batch)


def _front(batch: Batch) -> Batch | None:
    """The first tokens of a sequence, where a model takes nothing but tokens and masks of one length."""
    inputs = {"": batch.inputs} if isinstance(batch.inputs, Tensor) else dict(batch.inputs)
    tensors = [x for x in inputs.values() if isinstance(x, Tensor)]
    if len({x.shape for x in tensors}) != 1 or len(tensors) != len(inputs) or batch.patches is not None:
        return None
    if tensors[0].dim() != 2 or tensors[0].shape[1] <= SURVEYED or any(map(torch.is_floating_point, tensors)):
        return None
    cut = {name: x[:, :SURVEYED] for name, x in inputs.items()}
    counts, near = (None if x is None else x[:, :SURVEYED] for x in (batch.counts, batch.near))
    return replace(batch, inputs=cut.get("", cut), counts=counts, near=near)


def counting_of(
    source: Model, *, skip_first: bool | None = None, skip_special: bool | None = None
) -> Counting:
    """How the positions of batches of tensors are counted for this model."""
    config = getattr(source.module, "config", None)
    return Counting.of(source.tokenizer, config, skip_first=skip_first, skip_special=skip_special)


def told_counting(
    data: object, first: object, counting: Counting, batch_axis: int
) -> tuple[dict[str, str] | None, tuple[str, ...]]:
    """What a run records of how batches are counted, and its remarks, given the first; none of a `Batch`."""
    if isinstance(data, Data):
        said = data.facts().get("counting")
        return (said if isinstance(said, dict) else None), data.notes
    if isinstance(first, Batch):
        return None, ()
    said, remark = counting.describe(as_batch(first, seed=0, batch_axis=batch_axis), batch_axis)
    return said, (remark,) if remark else ()


def in_groups(batches: Iterable[Batch], groups: Sequence[Any]) -> Iterator[Batch]:
    """The batches with units from labels, one per sequence in the order they come in."""
    labels, done = plain_labels(groups), 0
    dealt = dealt_units(labels)
    for batch in batches:
        mine = labels[done : done + len(batch)]
        done += len(batch)
        if len(mine) == len(batch):
            yield replace(batch, units=unit_keys(mine, batch.keys, dealt))
    if done != len(labels):
        raise IsoscopeError(f"groups holds {len(labels)} labels for {done} sequences; give one per sequence.")


def _ready(
    item: object, module: nn.Module, *, seed: int, batch_axis: int, counting: Counting | None = None
) -> Batch:
    """A batch where the model is; pictures and sound that isoscope read, in the model's own precision."""
    batch = as_batch(item, seed=seed, batch_axis=batch_axis)
    if counting is not None and not isinstance(item, Batch):
        batch = counting.apply(batch, batch_axis)
    weight = next(module.parameters(), None)
    if weight is None:
        return batch
    return (batch.as_floats(weight.dtype) if isinstance(item, Batch) else batch).to(weight.device)


def describe(
    points: Any,
    *,
    sequence: Any = None,
    groups: Any = None,
    measures: str | Iterable[str] | None = None,
    seed: int = 0,
    memory: float = DEFAULT,
    name: str = "cloud",
) -> Observation:
    """Measure a cloud of points: an array or tensor [n, d], one vector a row.

    `sequence` [n] numbers the sequence (document, speaker, image) each vector comes from; without
    it every vector stands alone, and what is read inside sequences is left out unless named. `groups` [n]
    numbers what is independent, such as the document that several sequences were cut from.

    >>> cone = torch.tensor([[1.0, 0.1], [1.0, -0.1], [1.0, 0.0]])
    >>> table = describe(cone, measures=["mean_cosine"]).frame()
    >>> f"{table.value[0]:.3f}"
    '0.990'
    """
    chosen = choose(measures, set() if sequence is None else {"sequences"})
    if absent := [m.name for m in chosen if m.needs & {"attention", "layers"}]:
        raise IsoscopeError(f"{', '.join(absent)} needs a model: a cloud has neither layers nor attention.")
    cloud = points.detach() if isinstance(points, Tensor) else torch.as_tensor(np.asarray(points))
    if cloud.is_complex():
        raise IsoscopeError("a cloud holds real numbers; got complex ones.")
    if cloud.dim() != 2:
        raise IsoscopeError(f"a cloud is [vectors, dimensions]; got the shape {tuple(cloud.shape)}.")
    if len(cloud) < 2 or cloud.shape[1] < 1:
        raise IsoscopeError(
            f"a cloud needs at least 2 vectors of at least 1 dimension; got {len(cloud)} of {cloud.shape[1]}."
        )
    if not cloud.is_floating_point():
        cloud = cloud.double()
    notes = []
    if len(cloud) < cloud.shape[1]:
        notes.append(
            f"{len(cloud)} vectors of {cloud.shape[1]} dimensions: are rows and columns swapped? "
            "One vector is one row."
        )
    facts = {"vectors": len(cloud), "dimensions": cloud.shape[1]}
    own = content_keys(cloud.float(), seed)  # the same for one cloud from any format
    label, key = _labels(cloud, own, groups if sequence is None else sequence, seed)
    units = None if sequence is None or groups is None else _units(cloud, own, label, key, groups, seed)
    kept = plan([cloud.shape[1]], stats_of(chosen), memory)
    seen = Vectors.see(cloud, label, key, position=own, units=units)
    records: dict[type[Stat], Stat] = {stat: stat.of(seen, kept.parts) for stat in kept.stats}
    return Observation(
        {Site("cloud"): records}, chosen, name, facts=facts, remarks=tuple(notes), not_kept=kept.not_kept,
        inputs=hash_of_inputs(key, units),
    )  # fmt: skip


def offered_by(batch: Batch, sites: tuple[Site, ...], counterfactual: bool) -> set[str]:
    """What measures may need and there is: tokens, layers to hold against each other, attention."""
    kinds = [site.kind for site in sites]
    has = {
        "tokens": batch.tokens() is not None,
        "layers": kinds.count("layer") + kinds.count("output") > 1,
        "attention": any(kind in ATTENTION for kind in kinds),
        "counterfactual": counterfactual,
    }
    return {"sequences"} | {name for name, there in has.items() if there}


def stats_of(measures: Iterable[Measure]) -> list[type[Stat]]:
    """The records that these measures read, each once, and those that know what could not be used."""
    measures = list(measures)
    found = dict.fromkeys(stat for measure in measures for stat in measure.stats)
    places = {measure.at for measure in measures}
    beside = {"layer": (Centre, Directions), "attention": (Rows,)}
    return list(found | dict.fromkeys(stat for at in beside if at in places for stat in beside[at]))


def _labels(cloud: Tensor, keys: Tensor, sequence: Any, seed: int) -> tuple[Tensor | None, Tensor]:
    """Number the sequences 0 … s−1, with a key each from the content of all its vectors."""
    if sequence is None:
        return None, keys
    names = torch.as_tensor(sequence)
    if names.is_floating_point() and names.isnan().any():
        raise IsoscopeError("sequence holds NaN; it needs one number a vector.")
    if names.shape != (len(cloud),):
        raise IsoscopeError(
            f"sequence has the shape {tuple(names.shape)}; it needs one number a vector, ({len(cloud)},)."
        )
    _, label = torch.unique(names, return_inverse=True)
    joined = torch.zeros(int(label.max()) + 1, dtype=torch.int64).index_add(0, label, keys)
    return label, content_keys(joined[:, None], seed)


def _units(cloud: Tensor, own: Tensor, label: Tensor | None, key: Tensor, groups: Any, seed: int) -> Tensor:
    """The unit of every sequence: the key of its group, its own where it is alone there."""
    assert label is not None
    group, keys = _labels(cloud, own, groups, seed)
    assert group is not None
    pairs = torch.unique(torch.stack([label, group]), dim=1)
    if pairs.shape[1] != len(key):
        raise IsoscopeError("a sequence lies in several groups; every sequence belongs to one.")
    named = keys[pairs[1]].tolist()
    return unit_keys(named, key, dealt_units(named))


def _as_model(model: str | Model | nn.Module) -> Model:
    if isinstance(model, str):
        return load(model)
    return model if isinstance(model, Model) else Model(model, type(model).__name__)


def as_batches(
    data: str | Iterable[Any],
    model: Model,
    seed: int,
    *,
    skip_first: bool | None = None,
    skip_special: bool | None = None,
) -> Iterable[Any]:
    """Batches from an address, or as they are given."""
    if isinstance(data, Data) and (skip_first, skip_special) != (None, None):
        raise IsoscopeError(
            "skip_first and skip_special are for batches and addresses; this data has its own policy, which "
            "isoscope.text takes as first= and special=."
        )
    if not isinstance(data, str):
        if isinstance(data, Sized) and len(data) == 0:
            raise IsoscopeError("the data holds no batch; there is nothing to measure.")
        return data
    return open_data(data, model, first=skip_first is False, special=skip_special is False, seed=seed)
