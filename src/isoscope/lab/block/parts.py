"""The inside of one block while it runs: what every sub-layer gives, and the scores of its attention.

A stage that a block does not have (an identity), or that is what leaves it, is left out. Pooled spread,
smallest weight and histogram need the scores themselves, one sequence at a time, in float64 sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from isoscope.lab.model.transformer import Block
from isoscope.models.tap import at_rest
from isoscope.results.points import Points

STAGES = (  # kind of its rows, part of the block, whether it is what enters that part
    ("attention_input", "norm_attention", False), ("attention_output", "attention", False),
    ("attention_scaled", "inner_attention", False), ("attention_residual", "after_attention", True),
    ("attention_normed", "after_attention", False), ("mlp_input", "norm_mlp", False),
    ("mlp_output", "mlp", False), ("mlp_scaled", "inner_mlp", False), ("mlp_residual", "after_mlp", True),
)  # fmt: skip
BINS = 64
PICTURE = "scores"


@dataclass(frozen=True, eq=False)
class Inside:
    """What one forward of a block shows: stages by kind [b, t, d], queries and keys by head [b, h, t, e]."""

    stages: Mapping[str, Tensor]
    query: Tensor
    key: Tensor


@dataclass(frozen=True)
class ScoreReading:
    """Scores s = q·k/√e of all heads, each number the mean over heads, and histograms by series."""

    mean: float
    pooled_std: float
    smallest_weight: float
    histograms: Mapping[str, tuple[list[float], list[float]]]  # middle of each bin, density

    def points(self) -> list[Points]:
        """The histograms as a run keeps them."""
        return [Points(PICTURE, "attention", 1, None, name, *xy) for name, xy in self.histograms.items()]


def look_inside(block: Block, x: Tensor) -> Inside:
    """Run a block once on [b, t, d], and keep what its parts take and give."""
    held: dict[str, Tensor] = {}

    def keep(name: str, entering: bool) -> Any:
        return lambda part, taken, given: held.update({name: taken[0] if entering else given})

    parts = dict(block.named_modules())
    last = isinstance(block.after_mlp, nn.Identity)
    with ExitStack() as hooks, at_rest(block):
        for kind, name, entering in STAGES:
            there = not isinstance(parts[name], nn.Identity) or (entering and name == "after_attention")
            if there or (entering and not last):
                hooks.enter_context(parts[name].register_forward_hook(keep(kind, entering)))
        for name in ("query", "key"):
            hooks.enter_context(parts[f"attention.{name}"].register_forward_hook(keep(name, False)))
        block(x)
    heads = (held.pop(name).view(*x.shape[:2], block.attention.heads, -1) for name in ("query", "key"))
    query, key = (each.transpose(1, 2) for each in heads)
    return Inside({kind: held[kind] for kind, _, _ in STAGES if kind in held}, query, key)


def read_scores(query: Tensor, key: Tensor) -> ScoreReading:
    """Read the scores of unmasked attention [b, h, t, e], a sequence at a time.

    Mean; pooled standard deviation √Var_{s,i,j} s_ij of a head, of which the part that is the same along a
    row never reaches the softmax; mean over queries of min_j p_ij. The histograms are of the first sequence:
    the scores as they are, and less the mean of their row, which is what the softmax sees.
    """
    total, square, smallest = (query.new_zeros(query.shape[1], dtype=torch.float64) for _ in range(3))
    for one, other in zip(query, key, strict=True):
        scores = _scores(one, other)
        flat = scores.flatten(1)
        total += flat.sum(1, dtype=torch.float64)
        square += flat.double().square().sum(1)
        smallest += (scores.amin(-1) - scores.logsumexp(-1)).double().exp().mean(1)
    count = query.shape[0] * query.shape[2] * key.shape[2]
    mean = total / count
    pooled = (square / count - mean.square()).clamp_min(0).sqrt()
    first = _scores(query[0], key[0])
    drawn = {"score": _histogram(first), "within row": _histogram(first - first.mean(-1, keepdim=True))}
    smallest = smallest.mean() / len(query)
    return ScoreReading(float(mean.mean()), float(pooled.mean()), float(smallest), drawn)


def _scores(query: Tensor, key: Tensor) -> Tensor:
    return query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5


def _histogram(values: Tensor) -> tuple[list[float], list[float]]:
    """Middles and densities of even bins from the smallest value to the largest; the densities' area is 1."""
    low, high = float(values.min()), float(values.max())
    width = (high - low) / BINS or 1.0
    counts = torch.histc(values.float(), BINS, low, low + BINS * width)
    middles = [low + (bin_ + 0.5) * width for bin_ in range(BINS)]
    return middles, (counts.double() / counts.sum().double() / width).tolist()


_SHARED = {
    "family": "attention",
    "misleads": "The part of a score that is the same along its row does not reach the softmax.",
    "null": "none: it has the units of the scores", "interval": "over seeds",
    "source": "Godey, de la Clergerie & Sagot 2024", "range": "any size",
}  # fmt: skip
EXPLANATIONS: dict[str, dict[str, object]] = {
    "score_mean": {
        **_SHARED, "title": "mean score", "formula": "mean of s_ij over queries and keys, then over heads",
        "says": "Where the scores lie before the softmax.",
    },
    "score_std_pooled": {
        **_SHARED, "title": "pooled standard deviation of the scores",
        "formula": "√Var s_ij over sequences, queries and keys of a head, then the mean over heads",
        "says": "How far scores spread in all; within rows less, and only that can sharpen attention.",
        "range": "0 to any size",
    },
    "smallest_weight": {
        **_SHARED, "title": "smallest weight", "formula": "mean over queries of min_j p_ij",
        "says": "How much of a query's attention goes to the key that it looks at least.",
        "misleads": "It falls with the number of keys: 1/v where attention is even.",
        "null": "none: it depends on the scores' distribution even where nothing is sought",
        "range": "0 to 1",
    },
}  # fmt: skip
