"""Attention rows in torch, on any device, block by block: no score outlives its block.

A block of queries walks over blocks of keys and keeps, for every row, sums relative to the largest score so
far; a later block that raises it rescales them. Variances are centred block by block, merged by Chan's rule.
Scores are in base 2 (scale·log₂e goes into the queries): on a CPU exp2 takes a third of the time of exp.
Blocks that nobody sees are skipped; blocks that everybody sees take no masking.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from isoscope.geometry.attention import AttentionRows, seen
from isoscope.kernels.attention.inputs import AttentionInputs, compact, pieces

_BLOCKS = {"cpu": (256, 1024), "cuda": (2048, 4096)}  # queries (a thread) × keys
_NOWHERE = -3e38  # the score of what is hidden: finite, so that 0·score is 0
_LOG2E, _LN2 = math.log2(math.e), math.log(2)


class _Sums(NamedTuple):
    """Of the keys so far, one number a row [b, h, t]; weights are 2^(score − top)."""

    top: Tensor
    weight: Tensor  # Σ w
    energy: Tensor  # Σ w·(score − top)
    square: Tensor  # Σ w²
    travel: Tensor  # Σ w·|i' − j|
    keys: Tensor  # their number
    mean: Tensor  # of the scores
    scatter: Tensor  # Σ (score − mean)²


def chunked(inputs: AttentionInputs) -> AttentionRows:
    """The rows of `inputs`, in float32 (float64 for float64). Twin: `geometry.attention.attention_rows`."""
    b, h, t, s = inputs.shape
    g = inputs.groups
    kind = inputs.source.device.type
    most, keys = _BLOCKS.get(kind, _BLOCKS["cpu"])
    most *= torch.get_num_threads() if kind == "cpu" else 1
    queries = min(t, max(8, most // (h // g))) or 1
    together = max(1, most * keys // max(1, (h // g) * queries * min(keys, s)))
    found = torch.full((9, b, h, t), math.nan, dtype=inputs.dtype, device=inputs.source.device)
    if s == 0:
        found[7] = 0
    with exact_products(), torch.no_grad():
        for batch in pieces(b if s else 0, max(1, together // g)):
            for group in pieces(g, min(together, g)):
                part = inputs.part(batch, group)
                heads = slice(group.start * h // g, group.stop * h // g)
                k = None if part.k is None else part.k.to(inputs.dtype)
                first = part.first_keys()
                for rows in pieces(t, queries):
                    found[:, batch, heads, rows] = _block(part, k, rows, keys, first)
    lse, entropy, largest, collision, top, variance, first_key, count, distance = found.unbind()
    return AttentionRows(lse, entropy, largest, collision, top, variance, first_key, count.int(), distance)


@contextmanager
def exact_products() -> Iterator[None]:
    """Let no float32 product be rounded to TF32 or bfloat16 meanwhile, whatever the caller has allowed."""
    places = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)  # type: ignore[attr-defined]
    before = [place.fp32_precision for place in places]
    for place in places:
        place.fp32_precision = "ieee"
    try:
        yield
    finally:
        for place, precision in zip(places, before, strict=True):
            place.fp32_precision = precision


def _block(inputs: AttentionInputs, k: Tensor | None, rows: slice, width: int, first: Tensor) -> Tensor:
    """The statistics of some queries, [9, b, h, t], in the order of `AttentionRows`."""
    b, h, *_ = inputs.shape
    new = torch.zeros((b, h, rows.stop - rows.start), dtype=inputs.dtype, device=inputs.source.device)
    sums = _Sums(*(new for _ in range(8)))
    q = None
    if inputs.q is not None:
        q = inputs.q[:, :, rows].to(inputs.dtype) * (inputs.scale * _LOG2E)
        q = q.reshape(b, inputs.groups, h // inputs.groups, *q.shape[2:])
    at = torch.arange(rows.start, rows.stop, device=new.device) + inputs.offset
    by_content = any(term is not None for term in (inputs.key_lengths, inputs.mask, inputs.scores))
    reach = inputs.reach(rows)
    for keys in pieces(reach.stop, width, reach.start):
        visible = inputs.visible(rows, keys)
        if visible is not None and by_content:
            if not bool(visible.any()):
                continue
            visible = None if bool(visible.all()) else visible
        if q is None or k is None:
            products = new.new_zeros((*new.shape, keys.stop - keys.start))
        else:  # heads that share their keys are rows of one product
            products = (q.flatten(2, 3) @ k[:, :, keys].mT).view(*new.shape, keys.stop - keys.start)
        tiles = [None if term is None else compact(term[..., rows, keys]) for term in _terms(inputs)]
        sums = _fold(sums, _dress(inputs, products, tiles), visible, at, keys)
    return _read(sums, *_column(inputs, k, rows, q, first))


def _terms(inputs: AttentionInputs) -> tuple[Tensor | None, ...]:
    return inputs.scores, inputs.mask, inputs.bias, inputs.key_bias


def _dress(inputs: AttentionInputs, products: Tensor, terms: list[Tensor | None]) -> Tensor:
    """Scores in base 2 from products in base 2 (changed in place) and terms in nats."""
    if inputs.softcap is not None:
        cap = inputs.softcap * _LOG2E
        products.div_(cap).tanh_().mul_(cap)
    for term in terms:
        if term is not None and term.dtype != torch.bool:
            products.add_(term.to(products.dtype), alpha=_LOG2E)
    return products


def _fold(sums: _Sums, scores: Tensor, visible: Tensor | None, at: Tensor, keys: slice) -> _Sums:
    """The sums with one more block of keys; `scores` [b, h, t, s] is used up."""
    count = torch.full_like(sums.keys, scores.shape[-1])
    if visible is not None:
        shown = visible.to(scores.dtype)
        count = shown.sum(-1).expand_as(count)
        scores.mul_(shown)
    total = scores.sum(-1)
    if visible is not None and not bool(total.isfinite().all()):  # what is hidden may be NaN, and 0·NaN is
        scores = torch.where(visible, scores, 0.0)
        total = scores.sum(-1)
    mean = total / count.clamp_min(1.0)
    buffer = scores - mean[..., None]
    if visible is not None:
        buffer.mul_(shown)
        scores.add_((shown - 1).mul_(-_NOWHERE))
    scatter = torch.linalg.vector_norm(buffer, dim=-1).square_()
    # before any key is seen the top is _NOWHERE, and what was summed is dropped by a shrink of zero
    fresh = sums.keys == 0
    top = torch.where(fresh, _NOWHERE, sums.top).maximum(scores.amax(-1))
    scores.sub_(top[..., None])
    torch.exp2(scores, out=buffer)
    weight = buffer.sum(-1)
    square = torch.linalg.vector_norm(buffer, dim=-1).square_()
    travel = _travel(buffer, weight, at, keys)
    energy = scores.mul_(buffer).sum(-1)

    fall = torch.where(fresh, 0.0, sums.top - top)
    shrink = torch.where(fresh, 0.0, fall.exp2())
    whole = sums.keys + count
    step = torch.where(count > 0, mean - sums.mean, 0.0)
    share = count / whole.clamp_min(1.0)
    return _Sums(
        top=top,
        weight=sums.weight * shrink + weight,
        energy=(sums.energy + sums.weight * fall) * shrink + energy,
        square=sums.square * shrink.square() + square,
        travel=sums.travel * shrink + travel,
        keys=whole,
        mean=sums.mean + step * share,
        scatter=sums.scatter + scatter + step.square() * sums.keys * share,
    )


def _travel(weights: Tensor, total: Tensor, at: Tensor, keys: slice) -> Tensor:
    """Σ w·|i' − j| over one block, by one product where all its keys lie on one side of the queries."""
    local = torch.arange(keys.stop - keys.start, dtype=weights.dtype, device=weights.device)
    ahead = at - keys.start
    if keys.stop - 1 <= int(at[0]):
        return total * ahead - weights @ local
    if keys.start >= int(at[-1]):
        return weights @ local - total * ahead
    return (weights * (ahead[:, None] - local).abs()).sum(-1)


def _column(
    inputs: AttentionInputs, k: Tensor | None, rows: slice, q: Tensor | None, first: Tensor
) -> tuple[Tensor, Tensor]:
    """The score of the first key in base 2, and whether it is visible, [b, h, t] each."""
    b, h, *_ = inputs.shape
    at = torch.arange(rows.start, rows.stop, device=first.device)[:, None] + inputs.offset
    index = first[..., None, None].expand(b, h, len(at), 1)
    visible = inputs.by_position(at, index)
    if inputs.key_lengths is not None:
        visible &= index < inputs.key_lengths[:, None, None, None]
    columns = [None if term is None else term[..., rows, :].gather(-1, index) for term in _terms(inputs)]
    for column in columns[:2]:
        visible = visible if column is None else visible & seen(column)
    if q is None or k is None:
        products = torch.zeros(index.shape, dtype=inputs.dtype, device=first.device)
    else:
        keys = k.unsqueeze(2).expand(*q.shape[:3], *k.shape[2:])
        place = first.view(*q.shape[:3], 1, 1).expand(*q.shape[:3], 1, k.shape[-1])
        products = (q @ keys.gather(3, place).mT).flatten(1, 2)
    return _dress(inputs, products, columns)[..., 0], visible[..., 0]


def _read(sums: _Sums, first: Tensor, first_visible: Tensor) -> Tensor:
    usable = (sums.keys > 0) & sums.mean.isfinite() & sums.weight.isfinite()
    bits = sums.weight.log2()
    statistics = torch.stack(
        [
            (sums.top + bits) * _LN2,
            ((bits - sums.energy / sums.weight) * _LN2).clamp_min(0.0),
            1 / sums.weight,
            sums.square / sums.weight.square(),
            sums.top * _LN2,
            sums.scatter / sums.keys * _LN2**2,
            torch.where(first_visible, ((first - sums.top).exp2() / sums.weight).clamp_max(1.0), math.nan),
            sums.keys,
            sums.travel / sums.weight,
        ]
    )
    statistics = torch.where(usable, statistics, math.nan)
    statistics[7] = sums.keys
    return statistics
