"""A model's vectors over data, at one layer: every token's, or one a sequence.

Each walk runs the model anew and keeps nothing, so a repair is fitted on as much data as one has time for.
Pooled vectors are those of sentence-transformers: one sequence a text, special tokens in the mean. For
`token`, texts are packed and special tokens and position 0 do not count, as in `isoscope measure`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from isoscope.data.batch import Batch
from isoscope.data.counting import select_counted
from isoscope.data.source import Data
from isoscope.errors import unknown_name
from isoscope.models.inputs import open_data
from isoscope.models.source import Model
from isoscope.models.survey import Survey
from isoscope.models.tap import at_rest, tap
from isoscope.run.observe.observe import look
from isoscope.run.telling import Progress
from isoscope.sites import Site, select

POOLS = ("mean", "cls", "last", "token")


@dataclass(frozen=True, eq=False)
class States:
    """Walk over it for batches of vectors [n, d] and the sequence of each, [n] (a hash of its content)."""

    model: Model
    data: Data
    site: Site
    pool: str
    found: Survey
    progress: Progress | None = field(default=None)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor | None]]:
        done = 0
        for batch in self.data:
            done += len(batch)
            yield vectors_at(self.model, self.found, (self.site,), self.pool, batch)[self.site]
            if self.progress is not None:
                self.progress(done, self.data.size)


def vectors_at(
    model: Model, found: Survey, sites: Collection[Site], pool: str, batch: Batch
) -> dict[Site, tuple[Tensor, Tensor | None]]:
    """Run a model on a batch: vectors [n, d] by site, and the sequence of each where vectors are tokens."""
    made: dict[Site, tuple[Tensor, Tensor | None]] = {}
    weight = next(model.module.parameters())
    batch = batch.as_floats(weight.dtype).to(weight.device)

    def receive(site: Site, seen: Tensor) -> None:
        if site not in sites:
            return
        flow = found.vectors(site, seen)
        if pool == "cls" and flow.dim() == 3:
            made[site] = flow[:, 0].float().cpu(), None
            return
        counted = select_counted(flow.shape, batch, decoder=site in found.decoder).to(flow.device)
        vectors, sequence = counted.of(flow).float(), counted.sequence
        if pool == "token":
            made[site] = vectors.cpu(), batch.keys.cpu()[sequence]
        else:
            made[site] = pooled(vectors, sequence.to(flow.device), last=pool == "last").cpu(), None

    tapped = tap(model.module, found.blocks, receive, gives=found.gives, takes=found.takes)
    with at_rest(model.module), tapped:
        batch.call(model.module)
    return made


def pooled(vectors: Tensor, sequence: Tensor, *, last: bool = False) -> Tensor:
    """One vector a sequence: the mean of its vectors, or its last; those of a sequence stand together."""
    _, label, count = torch.unique_consecutive(sequence, return_inverse=True, return_counts=True)
    if last:
        return vectors[count.cumsum(0) - 1]
    total = vectors.new_zeros(len(count), vectors.shape[1]).index_add(0, label, vectors)
    return total / count[:, None]


def open_states(
    model: Model, address: str,
    *, layer: str = "output", pool: str = "mean", limit: int | None = None, max_length: int | None = None,
    batch_size: int = 16, progress: Progress | None = None
) -> States:  # fmt: skip
    """Vectors of a model at `layer`, a number or ``output``, over the data at `address`, pooled by `pool`."""
    if pool not in POOLS:
        raise unknown_name("way to pool", pool, POOLS)
    single = pool == "token"
    data = open_data(
        address, model, limit=limit, max_length=max_length, batch_size=batch_size, pack=single,
        special=not single, first=not single
    )  # fmt: skip
    found = look(model, next(iter(data)))
    flat = tuple(found.shapes)
    if layer == "output" and Site("output") not in flat:
        layer = str(max(site.layer or 0 for site in flat))
    return States(model, data, select(flat, layer)[0], pool, found, progress)
