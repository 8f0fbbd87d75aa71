"""How much of the gradients of W_Q and W_K lies along the mean query and the mean key of each head.

G is the gradient of a head's W [d, e], q = xW: a step along G moves queries, and the part of it along the
unit vector q̄/‖q̄‖ moves them along their mean. share = ‖G q̄‖² / (‖G‖² ‖q̄‖²), between 0 and 1; a gradient
that knows nothing of q̄ has 1/e. What earlier backward passes left in the gradients is taken away.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from isoscope.errors import IsoscopeError
from isoscope.models.blocks import plain_name
from isoscope.models.weights import Weights, open_weights
from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.run.observe.observation import Observation
from isoscope.stats.queries import Queries

NAMES = ("query_gradient_share", "key_gradient_share")
_ALONG = {"query_gradient_share": ("W_Q", "mean query", "q̄"), "key_gradient_share": ("W_K", "mean key", "k̄")}
EXPLANATIONS: dict[str, dict[str, object]] = {
    name: {
        "family": "training",
        "title": f"share of the gradient of {weight} along the {mean}",
        "formula": f"‖G {letter}‖² / (‖G‖² ‖{letter}‖²), G the gradient of a head's {weight} [d, e]",
        "says": f"How much of what this step would change moves vectors along the {mean}: drift being made.",
        "misleads": "It is of one batch, and before what the optimiser makes of it.",
        "null": "1/e, e the dimensions of a head",
        "interval": "none",
        "source": "isoscope",
        "range": "0 to 1",
    }
    for name, (weight, mean, letter) in _ALONG.items()
}


class Gradients:
    """The gradients of queries' and keys' weights since now."""

    def __init__(self, module: nn.Module) -> None:
        self._weights: Weights = open_weights(module)
        if not self._weights.steps:
            raise IsoscopeError(
                "the weights of queries and keys were not found by name: no gradients to read."
            )
        places = [step.place for step in self._weights.steps]
        names = {name for place in places for name in (*place.query, *place.key)}
        self._parameters = {
            plain_name(name): weight
            for name, weight in module.named_parameters(remove_duplicate=False)
            if plain_name(name) in names
        }
        grown = {name: weight.grad for name, weight in self._parameters.items() if weight.grad is not None}
        self._before = {name: gradient.detach().clone() for name, gradient in grown.items()}

    def rows(self, seen: Observation, run: str) -> Iterator[Row]:
        """A row a layer and a head, of queries and of keys."""
        whole = self._weights.opened.tensors

        def stored(name: str) -> Tensor:
            if name not in self._parameters:
                return whole.stored(name)
            now = self._parameters[name].grad
            if now is None:
                said = f"{name} has no gradient; call backward inside watch(step, gradients=True)."
                raise IsoscopeError(said)
            return now.detach() - self._before[name] if name in self._before else now.detach()

        tensors = replace(whole, stored=stored)
        gradients = replace(self._weights, opened=replace(self._weights.opened, tensors=tensors))
        for made in gradients.projections():
            record = seen.records.get(made.site, {}).get(Queries)
            if record is None:
                continue
            known = cast("Queries", record)
            after = "keys are seen after rotary position, their weights act before it" if made.rotary else ""
            for name, gradient, mean, why in (
                (NAMES[0], made.query, known.mean_query, ""),
                (NAMES[1], made.key, known.key.mean, after),
            ):
                shares = along(gradient.double(), mean.double())
                values = [math.nan] * len(shares) if why else shares.tolist()
                n, null = gradient.shape[1] * gradient.shape[2], 1 / gradient.shape[2]
                at = (run, seen.model, seen.revision, seen.step, made.site.kind, made.site.layer)
                for head, value in [(None, sum(values) / len(values)), *enumerate(values)]:
                    yield Row.at(*at, head, name, Reading(value, n, null, note=why))


def along(gradient: Tensor, mean: Tensor) -> Tensor:
    """‖G q̄‖² / (‖G‖² ‖q̄‖²) of every head: `gradient` [h, d, e], `mean` [h, e]."""
    part = torch.einsum("hde,he->hd", gradient, mean).square().sum(-1)
    return part / (gradient.square().sum((1, 2)) * mean.square().sum(-1))
