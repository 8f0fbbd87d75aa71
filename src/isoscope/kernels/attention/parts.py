"""Attention rows without some parts of their scores, and how each part varies: the anatomy of attention.

With mean queries q̄_i and mean keys k̄_j every variant is one product of queries and keys side by side, such as
(q − q̄, q̄)·(k, k̄) without the part of the key: the kernels of whole rows read them all. Twins:
`geometry.anatomy.parts` and `geometry.attention.row_statistics`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from isoscope.geometry.attention import AttentionRows, seen
from isoscope.kernels.attention.check import check
from isoscope.kernels.attention.chunked import chunked_parts
from isoscope.kernels.attention.inputs import STATISTICS
from isoscope.kernels.attention.rows import backend_for

VARIANTS = ("without_key", "without_position_and_key", "without_position", "content")


class PartRows(NamedTuple):
    """Rows without some parts of their scores, and the variances within rows of all parts, [4, b, h, t].

    The variances are those of the position, the key, the query's position and the content.
    """

    without_key: AttentionRows
    without_position_and_key: AttentionRows
    without_position: AttentionRows  # and without the query's own: what does not depend on this key
    content: AttentionRows  # alone
    variances: Tensor


def part_rows(
    q: Tensor,
    k: Tensor,
    query_mean: Tensor,
    key_mean: Tensor,
    *,
    scale: float,
    causal: bool = False,
    mask: Tensor | None = None,
    wanted: Collection[str] = STATISTICS,
    known: AttentionRows | None = None,
    backend: str = "auto",
) -> PartRows:
    """The rows of softmax(scale·q·kᵀ + mask) without parts of their scores.

    q [b, h, t, e]; k [b, g, s, e], h a multiple of g. `query_mean` and `key_mean` broadcast to them and stand
    at their places. What a floating mask adds where it hides nothing belongs to the position. Mean keys are
    rounded to the precision of the keys on a GPU. `wanted` names the statistics of the variants. `known` are
    the rows without position and key where they were read before.

    >>> q, k = torch.eye(2)[None, None], torch.eye(2)[None, None]
    >>> rows = part_rows(q, k, torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1, 2), scale=1.0)
    >>> rows.variances[:, 0, 0, 0].tolist()
    [0.0, 0.0, 0.0, 0.25]
    """
    inputs = check(
        q, k, None, scale=scale, causal=causal, key_lengths=None, mask=mask, bias=None, window=None,
        softcap=None, key_bias=None, wanted={*wanted, "score_variance"},
    )  # fmt: skip
    exact = torch.float64 if q.dtype == torch.float64 else torch.float32
    mean = query_mean.to(exact).expand(-1, *q.shape[1:])
    if backend_for(inputs, backend)[0] == "chunked":
        means = key_mean.to(exact).expand(-1, *k.shape[1:])
        rows, spread = chunked_parts(inputs, mean, means, known is None)
        without_key, without_both, without_position, content = rows
        without_both = known if without_both is None else without_both
        assert without_key is not None and without_both is not None
        assert without_position is not None and content is not None
        return PartRows(without_key, without_both, without_position, content, spread)
    from isoscope.kernels.attention.triton import fused

    means = key_mean.to(k.dtype).expand(k.shape)
    mean, sides = mean.expand(q.shape), torch.cat([k, means], -1)
    own, hidden = q - mean, None if inputs.mask is None else seen(inputs.mask)

    def read(of: Tensor, keys: Tensor, *, biased: bool = False, weighed: bool = True) -> AttentionRows:
        names = inputs.wanted if weighed else frozenset({"score_variance"})
        return fused(replace(inputs, q=of, k=keys, mask=inputs.mask if biased else hidden, wanted=names))

    content = read(torch.cat([own, -own], -1), sides)
    variances = (
        read(mean, means, biased=True, weighed=False),
        read(torch.cat([mean, -mean], -1), sides, weighed=False),
        read(own, means, weighed=False),
        content,
    )
    return PartRows(
        without_key=read(torch.cat([own, mean], -1), sides, biased=True),
        without_position_and_key=read(own, k) if known is None else known,
        without_position=read(torch.cat([q.to(exact), -q.to(exact)], -1), sides),
        content=content,
        variances=torch.stack([each.score_variance for each in variances]),
    )
