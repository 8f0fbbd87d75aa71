"""From the call that a model makes to queries, keys, scale and mask in one layout.

Queries are [b, h, t, e] and keys [b, g, s, e]. Torch takes more: three axes with heads folded into the
batch or without heads, five and more, a causal flag on a rectangle, key heads repeated for the query
heads that share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor

from isoscope.models.attention.softmax import folded, unfolded
from isoscope.models.attention.trail import Step

_ROUNDINGS = 64  # of a probability: a sum over e in another order


@dataclass(frozen=True)
class Found:
    """One attention as it was called, before it is known where it stands."""

    query: Tensor | None
    key: Tensor | None
    scale: float
    causal: bool
    mask: Tensor | None
    query_step: Step | None
    key_step: Step | None
    scores: Tensor | None = None
    softcap: float | None = None
    why: str = ""

    def explains(self, probabilities: Tensor) -> bool:
        """Whether query, key, scale and mask give what the softmax gave, where a key is visible."""
        assert self.query is not None and self.key is not None and self.scores is not None
        key = self.key.repeat_interleave(self.query.shape[1] // self.key.shape[1], 1)
        scores = self.scale * (self.query.float() @ key.float().mT)
        if self.mask is not None and self.mask.dtype == torch.bool:
            scores = scores.masked_fill(~self.mask, -torch.inf)
        elif self.mask is not None:
            scores = scores + self.mask
        expected = probabilities.reshape(self.scores.shape).float()
        usual = (self.scores.amax(-1) > torch.finfo(self.scores.dtype).min / 2) & expected.isfinite().all(-1)
        apart = (scores.softmax(-1) - expected).abs().amax(-1)
        size = self.scores.where(self.scores.abs() < 1e4, 0).abs().amax().clamp(min=1)
        least = max(torch.finfo(self.query.dtype).eps, torch.finfo(torch.float32).eps)  # the check's own
        return bool((apart[usual] <= _ROUNDINGS * least * float(size)).all())


def from_scaled_dot_product(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    heads: int | None,
    steps: tuple[Step | None, Step | None],
    living: bool = False,
) -> Found:
    """What F.scaled_dot_product_attention was called with; `living`, with its gradient."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    query, key, mask = given["query"], given["key"], given.get("attn_mask")
    if not living:
        query, key, mask = query.detach(), key.detach(), None if mask is None else mask.detach()
    scale, causal = given.get("scale"), bool(given.get("is_causal", False))
    t, s = query.shape[-2], key.shape[-2]
    if query.dim() == 3:
        lead = (query.shape[0] // heads, heads) if heads else folded(steps[0], query) or (query.shape[0], 1)
        mask = None if mask is None else unfolded(mask, *lead)
        query, key = query.unflatten(0, lead), key.unflatten(0, (lead[0], -1))
    elif query.dim() > 4:
        if mask is not None and mask.dim() > 4:
            mask = mask.expand(*query.shape[:-3], *mask.shape[-3:]).flatten(0, -4)
        query, key = query.flatten(0, -4), key.expand(*query.shape[:-3], *key.shape[-3:]).flatten(0, -4)
    if causal and t != s:  # torch lets row i see the first i + 1 keys
        mask, causal = torch.ones(t, s, dtype=torch.bool, device=query.device).tril(), False
    scale = float(scale) if scale is not None else query.shape[-1] ** -0.5
    return Found(query, key, scale, causal, mask, *steps)


def from_softmax(
    given: Any,
    step: Step | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    heads: int | None,
    living: bool = False,
) -> Found | None:
    """What a softmax over scores says, if its input comes from a product of queries and keys.

    Where it is `living` the scores, and they alone, have their gradient.
    """
    if not isinstance(given, Tensor) or step is None or step.scores is None or step.scores.spent:
        return None
    axis = args[1] if len(args) > 1 else kwargs.get("dim")
    if axis not in (-1, given.dim() - 1):
        return None
    scores = step.scores
    lead = (given.shape[0] // heads, heads) if heads and given.dim() == 3 else scores.lead
    b, h = lead if lead and given.dim() == 3 else _lead(given, scores.key)
    four = (given if living else given.detach()).reshape(b, h, *given.shape[-2:])
    query, key, mask, why = scores.query, scores.key, None, scores.why
    softcap = scores.scale if scores.inner is not None else None
    if softcap is not None:
        query, key, why = None, None, why or f"the scores are capped at ±{softcap:g} by a tanh"
    if query is not None and key is not None:
        try:
            query, key = query.reshape(b, h, *query.shape[-2:]), _keys(key, b, h)
            mask = _mask([_four(term, given, b, h) for term in scores.terms], four.dtype)
        except RuntimeError:  # a layout that was not thought of; the scores are right all the same
            query, key, mask, why = None, None, None, "the axes of query, key and mask were not understood"
    scale = scores.scale if scores.inner is None else scores.inner * scores.scale
    steps = scores.query_step, scores.key_step
    return Found(query, key, scale, False, mask, *steps, scores=four, softcap=softcap, why=why)


def _lead(given: Tensor, key: Tensor | None) -> tuple[int, int]:
    """(b, h) of scores: one head in [b, t, s]; [b, g, r, t, s] where r query heads share a key head."""
    *lead, _, _ = given.shape
    if len(lead) == 1:
        return lead[0], 1
    shared = len(lead) == 3 and key is not None and key.dim() == 5 and key.shape[2] == 1
    return (lead[0], lead[1] * lead[2]) if shared else (prod(lead[:-1]), lead[-1])


def _keys(key: Tensor, b: int, h: int) -> Tensor:
    """Keys [b, g, s, e], with as many heads as there are if they divide those of the query."""
    there = prod(key.shape[:-2])
    if there != b * h and (key.shape[0] != b or h * b % there):
        key, there = key.expand(b, h, *key.shape[-2:]), b * h
    return key.reshape(b, there // b, *key.shape[-2:])


def _four(term: Tensor, given: Tensor, b: int, h: int) -> Tensor:
    """A term in a shape that broadcasts to [b, h, t, s]."""
    if term.dim() > 4:
        return term.expand(given.shape).reshape(b, h, *given.shape[-2:])
    return unfolded(term, b, h) if given.dim() == 3 else term


def _mask(terms: list[Tensor], dtype: torch.dtype) -> Tensor | None:
    """The one mask that stands for all terms: itself, or their sum with -inf where a key is hidden."""
    if len(terms) < 2:
        return terms[0] if terms else None
    hidden = torch.full((), -torch.inf, dtype=dtype, device=terms[0].device)
    added = [torch.where(term, 0, hidden) if term.dtype == torch.bool else term for term in terms]
    return sum(added[1:], added[0])


def once_each(key: Tensor, heads: int, copies: int | None) -> tuple[Tensor, int]:
    """Every key head once: [b, g, s, e] of a key whose heads were repeated side by side, and how often.

    Copies are told by comparing, which makes the device wait: where they were counted before, `copies`
    is taken as it is. Keys that are all zero are no copies.
    """
    if copies is None:
        copies = _copies(key, heads)
    return key[:, ::copies], copies


def _copies(key: Tensor, heads: int) -> int:
    there = key.shape[1]
    if there < heads or there == 1:
        return 1
    if key.stride(1) == 0:
        return there
    key = key.nan_to_num()  # a copy of NaN is a copy
    for copies in range(there, 1, -1):
        if there % copies == 0:
            groups = key.reshape(key.shape[0], -1, copies, *key.shape[2:])
            if torch.equal(groups, groups[:, :, :1].expand_as(groups)):
                return copies if bool(key.any()) else 1
    return 1
