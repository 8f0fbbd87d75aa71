"""Entropy target: attention that is as sharp as it is told to be, whatever else it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from isoscope.errors import IsoscopeError
from isoscope.lab.penalties.watching import Forwards, last, watched
from isoscope.lab.variants.base import at_least_single
from isoscope.models.attention.tap import Attended, Learnt, attention_tap
from isoscope.models.blocks import find_blocks
from isoscope.run.observe.attend import settled
from isoscope.sites import Site

MOST = 16  # sequences of a batch that are looked at: their weights are [16, h, t, t]


class _Seen(NamedTuple):
    """Of one attention: where, the sum of normalised entropies over rows, and how many they are."""

    site: Site
    total: Tensor
    rows: Tensor


@dataclass(frozen=True)
class EntropyTarget:
    """λ · mean over layers of (H̄ − target)², H̄ the mean of H/log v over the rows and heads of a layer.

    Of self-attention, over rows that count and see v ≥ 2 keys, of the first 16 sequences. Weights w that do
    not add up to one enter as |w|/Σ|w|; of a mixture of maps (differential attention) it is the mixture's.
    """

    strength: float
    target: float
    watches: ClassVar[bool] = True
    _forwards: Forwards = field(default_factory=WeakKeyDictionary, init=False, repr=False, compare=False)
    _learnt: WeakKeyDictionary[nn.Module, Learnt] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not 0 <= self.target <= 1:
            raise IsoscopeError(
                f"entropy's target is from 0 (on one key) to 1 (on all alike); got {self.target:g}."
            )

    @contextmanager
    def watch(self, model: nn.Module) -> Iterator[None]:
        """Around the forward: see every attention."""
        with watched("entropy", model, self._forwards) as forward:

            def attention(site: Site, attended: Attended) -> None:
                if forward.runs and site.kind != "cross_attention":
                    some = attended.scores if attended.scores is not None else attended.query
                    assert some is not None
                    counts = forward.counted(min(MOST, len(some)), some.shape[2])
                    with torch.autocast(some.device.type, enabled=False):
                        forward.found.append(_Seen(site, *_summed(_first(attended), counts)))

            learnt = self._learnt.setdefault(model, Learnt())
            blocks = find_blocks(model)
            with attention_tap(model, blocks, attention, learnt=learnt, unrotated=False, living=True):
                yield

    def __call__(self, model: nn.Module) -> Tensor:
        """The penalty of the last forward, a scalar."""
        entropies = [mean for _, mean in sorted(self.entropies(model).items())]
        return self.strength * (torch.stack(entropies) - self.target).square().mean()

    def entropies(self, model: nn.Module) -> dict[int, Tensor]:
        """H̄ of every layer in the last forward."""
        found: list[_Seen] = last("entropy", model, self._forwards, "attention")
        mixed = {seen.site.layer for seen in found if seen.site.kind == "mixed_attention"}
        layers: dict[int, list[_Seen]] = {}
        for seen in found:
            if seen.site.layer not in mixed or seen.site.kind == "mixed_attention":
                layers.setdefault(seen.site.layer or 0, []).append(seen)
        sums: dict[int, list[Tensor]] = {}
        for layer, each in layers.items():
            sums[layer] = [
                torch.stack(part).sum() for part in ([s.total for s in each], [s.rows for s in each])
            ]
        return {layer: total / rows.clamp_min(1) for layer, (total, rows) in sums.items()}


def _first(attended: Attended) -> Attended:
    """The first sequences of a batch, in 32 bits, hidden keys at −inf."""

    def few(x: Tensor | None) -> Tensor | None:
        return None if x is None else x[:MOST] if x.dtype == torch.bool else at_least_single(x[:MOST])

    query, key, scores = few(attended.query), few(attended.key), few(attended.scores)
    mask = attended.mask if attended.mask is None or attended.mask.dim() < 4 else few(attended.mask)
    some = scores if scores is not None else query
    assert some is not None
    found = settled(replace(attended, query=query, key=key, scores=scores, mask=mask), len(some))
    assert isinstance(found, Attended)
    return found


def _summed(attended: Attended, counts: Tensor | None) -> tuple[Tensor, Tensor]:
    """Σ H/log v over the rows that count and see two keys or more, and how many these are."""
    scores = attended.scores if attended.scores is not None else _scores(attended)
    visible = scores > -torch.inf
    keys = visible.sum(-1)
    rows = keys > 1
    if counts is not None:
        rows = rows & counts[:, None]
    shown = scores.masked_fill(~rows[..., None], 0)  # a row of −inf alone would have a gradient of NaN
    weigh = attended.weights_of
    if weigh is None:
        share = shown.softmax(-1)
    else:
        size = at_least_single(weigh(shown))[:MOST].abs().masked_fill(~visible, 0)
        share = size / size.sum(-1, keepdim=True).clamp_min(torch.finfo(size.dtype).tiny)
    logarithm = torch.where(share > 0, share, 1).log()  # log 0 has no gradient, and 0 log 0 is 0
    entropy = -(share * logarithm).sum(-1)
    return torch.where(rows, entropy / keys.clamp_min(2).to(entropy).log(), 0).sum(), rows.sum()


def _scores(attended: Attended) -> Tensor:
    """The scores s = scale · q kᵀ with their mask, [b, h, t, s]."""
    query, key, mask = attended.query, attended.key, attended.mask
    assert query is not None and key is not None
    scores = attended.scale * (query @ key.repeat_interleave(query.shape[1] // key.shape[1], 1).mT)
    if attended.softcap is not None:
        scores = attended.softcap * (scores / attended.softcap).tanh()
    if attended.causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)
        scores = scores.masked_fill(hidden.triu(1 + scores.shape[3] - scores.shape[2]), -torch.inf)
    if mask is None:
        return scores
    return scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
