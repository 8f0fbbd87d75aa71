"""Weights without a forward pass: W_Q and W_K of every head, vocabulary matrices, norms.

Read by name, one attention at a time: a consumer holds a few matrices. Rotary position and QK-norm come after
the projections and are not in them; the remarks name both where they follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.models.source import Model
from isoscope.models.weights.config import calls_of, part_for, said
from isoscope.models.weights.files import Opened, open_address, open_module
from isoscope.models.weights.names import (
    Place,
    Tower,
    find_places,
    find_towers,
    places_by_pattern,
    stem_of,
    unknown,
)
from isoscope.models.weights.norms import last_norm
from isoscope.models.weights.read import Norm, Projections, Step, post_norm, read_norm, read_projections
from isoscope.models.weights.vocabulary import input_name, no_output, output_bias, output_name
from isoscope.sites import Site

__all__ = ["Norm", "Projections", "Vocabulary", "Weights", "open_weights"]
SIDES = ("input", "output")


@dataclass(frozen=True)
class Vocabulary:
    """A vocabulary matrix [|V|, d], its bias where the output has one, and whether both sides share it."""

    name: str
    matrix: Tensor  # [|V|, d]
    bias: Tensor | None  # [|V|]
    tied: bool
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Weights:
    """The weights of a model, known by name; each is read when it is asked for."""

    opened: Opened
    steps: tuple[Step, ...]
    towers: tuple[Tower, ...]

    @property
    def model(self) -> str:
        """The address, or what a live module is called."""
        return self.opened.model

    @property
    def revision(self) -> str:
        """The hub's commit; empty where there is none."""
        return self.opened.revision

    @property
    def sites(self) -> tuple[Site, ...]:
        """Where attention is, without reading a tensor."""
        return tuple(step.site for step in self.steps)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What holds for the whole model."""
        if len([tower for tower in self.towers if not tower.decoder]) < 2:
            return ()
        stems = ", ".join(f"{tower.stem} ({len(tower.blocks)})" for tower in self.towers)
        return (f"blocks are numbered through the towers in this order: {stems}",)

    def projections(self) -> Iterator[Projections]:
        """Queries and keys of every attention, in the order of the run, one at a time."""
        if not self.steps:
            raise unknown(self.model, self.opened.tensors.names)
        return (read_projections(self.opened, step, self.towers) for step in self.steps)

    def final_norm(self) -> Norm | None:
        """The norm that the last hidden state leaves: the final one, or the last block's own if post-norm."""
        if not self.towers:
            return None
        tensors, tower = self.opened.tensors, self.towers[-1]
        config = part_for(self.opened.config, tower)
        mine = next(step.place for step in self.steps if step.tower == tower)
        return read_norm(tensors, last_norm(tower, tensors.names, config, post_norm(tensors, mine)), config)

    def vocabulary(self, side: str) -> Vocabulary | None:
        """The matrix that tokens enter by (`input`) or leave by (`output`); None where `absent` says why."""
        if self.absent(side):
            return None
        tensors, leaves = self.opened.tensors, side == "output"
        stored = output_name(tensors.names) if leaves else None
        name = stored or input_name(tensors.names, decoder=leaves)
        assert name is not None
        bias = output_bias(tensors.names, stored) if leaves else None
        scaled = leaves and said(part_for(self.opened.config, None), "scale_decoder_outputs")
        remarks = ("the model multiplies what enters this matrix by 1/√d",) if scaled else ()
        added = None if bias is None else tensors.read(bias).flatten()
        return Vocabulary(name, tensors.read(name), added, self._tied(), remarks)

    def absent(self, side: str) -> str:
        """Why there is no such vocabulary matrix; empty where there is one."""
        if side not in SIDES:
            raise unknown_name("vocabulary", side, SIDES)
        names = self.opened.tensors.names
        if side == "output" and output_name(names) is not None:
            return ""
        if input_name(names) is None:
            return "the weights hold no table of tokens"
        return "" if side == "input" else no_output(names, self.opened.config)

    def _tied(self) -> bool:
        """Whether input and output are the same numbers."""
        tensors = self.opened.tensors
        entry, leave = input_name(tensors.names, decoder=True), output_name(tensors.names)
        if entry is None or self.absent("output"):
            return False
        if leave is None:
            return True
        try:
            if tensors.shape(entry) != tensors.shape(leave):
                return False
            one, other = tensors.stored(entry), tensors.stored(leave)
        except IsoscopeError:  # one of them cannot be read: the other is still worth reading
            return False
        return one.data_ptr() == other.data_ptr() or torch.equal(one, other)


def open_weights(
    model: str | nn.Module | Model,
    *,
    revision: str | None = None,
    config: str | None = None,
    query: str | None = None,
    key: str | None = None,
    whole: bool = True,
    living: bool = False,
) -> Weights:
    """The weights of a model: a folder, a hub id, a file of weights, or a module that is there already.

    `config` names a config.json where none lies beside. `query` and `key` are regular expressions for the
    weights of an architecture that is not known, each with one group for the number of the layer. A shard
    that is missing is an error now; without `whole`, when something in it is read. Those of a module that is
    there are `living` where a gradient is to reach them: then they stay where they are.
    """
    if isinstance(model, Model):
        opened = open_module(model.module, model.name, model.revision, living=living)
    elif isinstance(model, nn.Module):
        opened = open_module(model, type(model).__name__, living=living)
    else:
        opened = open_address(str(model), revision, config)
    names = opened.tensors.names
    if (query is None) != (key is None):
        given, lacking = ("query", "key") if key is None else ("key", "query")
        raise IsoscopeError(f"--{given} was given without --{lacking}; name both.")
    places = find_places(names) if query is None or key is None else places_by_pattern(names, query, key)
    towers = find_towers(places, names)
    if not places and input_name(names) is None and output_name(names) is None:
        raise unknown(opened.model, names)
    if whole:
        opened.tensors.check(frozenset(name for place in places for name in (*place.query, *place.key)))
    return Weights(opened, tuple(_steps(places, towers, opened)), tuple(towers))


def _steps(places: list[Place], towers: list[Tower], opened: Opened) -> Iterator[Step]:
    """The attentions in the order of the run, numbered by call of a block as the tap numbers them."""
    start = 0
    for tower in towers:
        mine = [place for place in places if stem_of(place.block) == tower.stem]
        calls = calls_of(part_for(opened.config, tower), tower)
        for layer, block in enumerate(calls):
            for place in sorted((p for p in mine if p.block == block), key=lambda p: (p.cross, p.module)):
                site = Site("cross_attention" if place.cross else "attention", start + layer + 1)
                previous = calls[layer - 1] if layer else None
                yield Step(site, place, tower, layer, previous, calls.count(block))
        start += len(calls)
