"""Observe a model over data in one streamed pass, or describe a cloud of points.

Each tensor is folded into its site's records the moment it is seen; no activation is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isoscope.data.batch import Batch, as_batch
from isoscope.data.counting import select_counted
from isoscope.data.keys import content_keys
from isoscope.data.source import Data
from isoscope.errors import IsoscopeError
from isoscope.measures.table import choose
from isoscope.models.inputs import open_data
from isoscope.models.source import Model, load
from isoscope.models.survey import Survey, sequence_first, survey
from isoscope.models.tap import at_rest, tap
from isoscope.run.memory import DEFAULT, Plan, plan
from isoscope.run.observation import Observation
from isoscope.sites import Site, select
from isoscope.stats.base import Stat
from isoscope.stats.seen import Vectors
from isoscope.stats.within import Within

Progress = Callable[[int, int | None], None]


def observe(
    model: str | Model | nn.Module,
    data: str | Iterable[Any] = "embedded",
    *,
    measures: Iterable[str] | None = None,
    layers: str = "*",
    seed: int = 0,
    memory: float = DEFAULT,
    progress: Progress | None = None,
) -> Observation:
    """Measure a model's representations over data, exactly, in one pass.

    `model` is an address (hub id or folder), what `load` returned, or any live module. `data` is an
    address of text, what `text` returned, or batches: tensors, mappings of tensors, or `Batch`.
    `layers` selects sites by glob (``"layer.*"``, ``"0,6,12"``, ``"output"``). `memory` bounds the
    bytes that records may take. `progress` is called with (sequences done, sequences in all).
    """
    chosen = choose(measures)
    source = _as_model(model)
    batches = _as_batches(data, source, seed)
    total = batches.size if isinstance(batches, Data) else None
    folder: _Folder | None = None
    done = 0
    for item in batches:
        if folder is None:
            found = look(source, item)
            sites = select(found.shapes, layers)
            kept = plan(map(found.width, sites), dict.fromkeys(m.stat for m in chosen), memory)
            folder = _Folder(sites, kept, found)
        batch = _ready(item, source.module, seed=seed, batch_axis=found.input_axis)
        folder.fold(source.module, batch)
        done += len(batch)
        if progress is not None:
            progress(done, total)
    if folder is None:
        raise IsoscopeError("the data holds no batch; there is nothing to measure.")
    about_data, left_out = (batches.facts(), batches.notes) if isinstance(batches, Data) else ({}, ())
    return Observation(
        records=folder.records,
        measures=chosen,
        model=source.name,
        revision=source.revision,
        step=source.step,
        facts={**source.facts(), **about_data, "blocks": {str(s): b for s, b in folder.found.leaves.items()}},
        remarks=(*source.notes, *left_out, *folder.remarks()),
        not_kept=folder.kept.not_kept,
    )


def look(source: Model, item: object) -> Survey:
    """Survey a model on a first batch: on one sequence of it where it is known how to take one."""
    alone = isinstance(item, Batch | Tensor) and not sequence_first(source.module)
    if isinstance(item, Tensor) and not alone and item.shape[0] == item.shape[1] > 1:
        item = item[1:]  # as many sequences as positions: one fewer tells the two apart
    batch = _ready(item, source.module, seed=0, batch_axis=0)
    return survey(source.module, batch.first() if alone else batch)


def _ready(item: object, module: nn.Module, *, seed: int, batch_axis: int) -> Batch:
    """A batch where the model is; pictures and sound that isoscope read, in the model's own precision."""
    batch = as_batch(item, seed=seed, batch_axis=batch_axis)
    weight = next(module.parameters(), None)
    if weight is None:
        return batch
    return (batch.as_floats(weight.dtype) if isinstance(item, Batch) else batch).to(weight.device)


def describe(
    points: Any,
    *,
    sequence: Any = None,
    measures: Iterable[str] | None = None,
    seed: int = 0,
    memory: float = DEFAULT,
    name: str = "cloud",
) -> Observation:
    """Measure a cloud of points: an array or tensor [n, d], one vector a row.

    `sequence` [n] numbers the sequence (document, speaker, image) each vector comes from; without
    it every vector stands alone, and what is read inside sequences is left out unless named.

    >>> cone = torch.tensor([[1.0, 0.1], [1.0, -0.1], [1.0, 0.0]])
    >>> table = describe(cone, measures=["mean_cosine"]).frame()
    >>> f"{table.value[0]:.3f}"
    '0.990'
    """
    chosen = choose(measures)
    if measures is None and sequence is None:  # nothing is inside a single vector
        chosen = tuple(measure for measure in chosen if measure.stat is not Within)
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
    label, key = _labels(cloud, sequence, seed)
    kept = plan([cloud.shape[1]], dict.fromkeys(measure.stat for measure in chosen), memory)
    seen = Vectors.see(cloud, label, key)
    records: dict[type[Stat], Stat] = {stat: stat.of(seen, kept.parts) for stat in kept.stats}
    return Observation(
        {Site("cloud"): records}, chosen, name, facts=facts, remarks=tuple(notes), not_kept=kept.not_kept
    )


def _labels(cloud: Tensor, sequence: Any, seed: int) -> tuple[Tensor | None, Tensor]:
    """Number the sequences 0 … s−1, with a key each from the content of all its vectors."""
    keys = content_keys(cloud.float(), seed)  # the same for one cloud from any format
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


class _Folder:
    """Folds what the tap shows into records, site by site."""

    def __init__(self, sites: tuple[Site, ...], kept: Plan, found: Survey) -> None:
        self.kept = kept
        self.found = found
        self.records: dict[Site, dict[type[Stat], Stat]] = {site: {} for site in sites}
        self._remarks: dict[Site, str] = {}

    def fold(self, module: nn.Module, batch: Batch) -> None:
        def receive(site: Site, seen: Tensor) -> None:
            if site in self.records:
                self._add(site, seen.detach(), batch)

        found = self.found
        with at_rest(module), tap(module, found.blocks, receive, gives=found.gives, takes=found.takes):
            batch.call(module)

    def _add(self, site: Site, seen: Tensor, batch: Batch) -> None:
        if seen.dim() > 3:  # a feature map has no tokens before its positions
            batch = replace(batch, patches=None)
        decoder = site in self.found.decoder
        points, sequence, remark = select_counted(self.found.vectors(site, seen), batch, decoder=decoder)
        if remark:
            self._remarks[site] = remark
        vectors = Vectors.see(points, sequence, batch.keys)
        mine = self.records[site]
        for stat in self.kept.stats:
            new = stat.of(vectors, self.kept.parts)
            mine[stat] = mine[stat].merge(new) if stat in mine else new

    def remarks(self) -> list[str]:
        """Each remark once, with the sites it holds for."""
        told = []
        for remark in dict.fromkeys(self._remarks.values()):
            sites = [str(site) for site, said in self._remarks.items() if said == remark]
            told.append(f"{sites[0]} to {sites[-1]}: {remark}" if len(sites) > 1 else f"{sites[0]}: {remark}")
        return told


def _as_model(model: str | Model | nn.Module) -> Model:
    if isinstance(model, str):
        return load(model)
    return model if isinstance(model, Model) else Model(model, type(model).__name__)


def _as_batches(data: str | Iterable[Any], model: Model, seed: int) -> Iterable[Any]:
    if not isinstance(data, str):
        if isinstance(data, Sized) and len(data) == 0:
            raise IsoscopeError("the data holds no batch; there is nothing to measure.")
        return data
    return open_data(data, model, seed=seed)
