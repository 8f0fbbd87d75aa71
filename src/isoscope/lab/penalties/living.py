"""Weights of a model as they are now, with their gradient: found by name once, read at every step.

A weight that is computed (σReparam, a parametrisation) is read from its module, and so computed again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from weakref import ref

import torch
from torch import Tensor, nn

from isoscope.lab.variants.base import at_least_single
from isoscope.models.blocks import plain_name
from isoscope.models.weights import Norm, Weights, open_weights
from isoscope.models.weights import config as config_of
from isoscope.models.weights.layouts import cut, weights_of
from isoscope.models.weights.names import Place

Read = Callable[[str], Tensor]


def reader(model: nn.Module) -> Read:
    """What reads a weight of the model by its plain name, in 32 bits at least."""
    owners = {plain_name(name): part for name, part in model.named_modules() if part is not model}
    whole = ref(model)  # held, it would never be freed

    def read(path: str) -> Tensor:
        owner, _, attribute = path.rpartition(".")
        return at_least_single(getattr(owners.get(owner, whole()), attribute))

    return read


@dataclass(frozen=True)
class Form:
    """Where the factors of W = scale · diag(γ) W_Q W_Kᵀ diag(γ) lie, for the heads of one attention."""

    read: Read
    place: Place
    layout: str
    heads: int
    key_heads: int
    head_width: int | None
    scale: float
    norms: tuple[str | None, str | None]  # the γ in front of queries and of keys
    plus_one: bool  # whether the norm multiplies by 1 + weight

    def factors(self) -> tuple[Tensor, Tensor]:
        """diag(γ) W_Q and diag(γ) W_K, both [h, d, e], a key head for every query head that it serves."""
        weights = weights_of(self.place, self.read)
        query, key = cut(*weights, self.layout, self.heads, self.key_heads, self.head_width)
        query, key = (self._folded(*pair) for pair in zip((query, key), self.norms, strict=True))
        return query.mT, key.repeat_interleave(self.heads // self.key_heads, 0).mT

    def _folded(self, weight: Tensor, norm: str | None) -> Tensor:
        if norm is None:
            return weight
        gain = self.read(norm)
        return weight * (gain + 1 if self.plus_one else gain)


def forms(model: nn.Module) -> tuple[Form, ...]:
    """Every self-attention of a model, each set of weights once."""
    weights = open_weights(model, living=True)
    read, found = reader(model), {}
    for step, seen in zip(weights.steps, weights.projections(), strict=True):
        config = config_of.part_for(weights.opened.config, step.tower)
        if step.place.cross:
            continue
        layout, width = config_of.cut_of(config, step.place.cut), config_of.gated_width(config)
        heads = (len(seen.query), len(seen.key), width)
        norms = (_gain(weights, seen.norm), _gain(weights, seen.key_norm))
        plus_one = config_of.adds_one(config)
        found[step.place] = Form(read, step.place, layout, *heads, seen.scale, norms, plus_one)
    return tuple(found.values())


def _gain(weights: Weights, norm: Norm | None) -> str | None:
    if norm is None:
        return None
    words = (f"{norm.name}.{word}" for word in ("weight", "gamma"))
    return next(name for name in words if name in weights.opened.tensors.names)


def exactly(model: nn.Module) -> AbstractContextManager[Any]:
    """Outside autocast, where a sum of products would have 16 bits."""
    some = next(model.parameters(), None)
    return torch.autocast("cpu" if some is None else some.device.type, enabled=False)
