"""Attention of heads, from scores that exist: what the readings of attention mean, row by row.

`scores` [b, h, t, s] enter the softmax, −inf where a key is hidden; `counts` [b, t] are the queries that
count. Each function gives one number a head, [h]. A row that sees no key, or holds NaN or +inf, is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

SINK = 0.3  # the mass of the first key from which on it is counted as a sink (arXiv 2510.06477)
BESIDE = 0.01  # of a row's weight: where less lies beside the first key, rounding in float32 would decide


def entropy(scores: Tensor, counts: Tensor) -> Tensor:
    """The mean of −Σ p log p, in nats."""
    return _mean(scores, counts, lambda p, row, i: _entropy(p))


def normalised_entropy(scores: Tensor, counts: Tensor) -> Tensor:
    """The mean of H/log v over rows that see v ≥ 2 keys, in [0, 1]."""
    return _mean(scores, counts, lambda p, row, i: _entropy(p) / math.log(len(p)) if len(p) > 1 else math.nan)


def largest_weight(scores: Tensor, counts: Tensor) -> Tensor:
    """The mean of the largest weight of a row, in (0, 1]."""
    return _mean(scores, counts, lambda p, row, i: float(p.max()))


def effective_keys(scores: Tensor, counts: Tensor) -> Tensor:
    """The mean of 1/Σp², from 1 to the number of keys."""
    return _mean(scores, counts, lambda p, row, i: 1 / float((p**2).sum()))


def score_std(scores: Tensor, counts: Tensor) -> Tensor:
    """√ of the mean over rows of the variance of the scores over visible keys."""
    return _mean(scores, counts, lambda p, row, i: float(row[_visible(row)].var(correction=0))).sqrt()


def attended_distance(scores: Tensor, counts: Tensor) -> Tensor:
    """The mean of Σ p_j |i − j|; causal queries are the last of the positions."""

    def distance(p: Tensor, row: Tensor, i: int) -> float:
        return float((p * (i - torch.nonzero(_visible(row)).flatten()).abs()).sum())

    return _mean(scores, counts, distance)


def sink_mass(scores: Tensor, counts: Tensor) -> Tensor:
    """The mean weight of the first key that any row of its sequence sees, over rows that see it."""
    found = []
    for head in range(scores.shape[1]):
        each = []
        for sequence, counted in zip(scores[:, head].double(), counts, strict=True):
            first = _first(sequence)
            rows = sequence[counted]
            each += [float(row.softmax(0)[first]) for row in rows if _whole(row) and _visible(row)[first]]
        found.append(_known(each))
    return torch.tensor(found, dtype=torch.float64)


def sink_rate(scores: Tensor, counts: Tensor) -> Tensor:
    """1 for a head whose sink mass is above `SINK`, else 0."""
    mass = sink_mass(scores, counts)
    return (mass > SINK).double().where(mass.isfinite(), math.nan)


def largest_score(scores: Tensor, counts: Tensor) -> Tensor:
    """The largest score of any row that counts."""
    found = [
        max((float(row.max()) for row in scores[:, head][counts].double() if _whole(row)), default=math.nan)
        for head in range(scores.shape[1])
    ]
    return torch.tensor(found, dtype=torch.float64)


def attention_mass(weights: Tensor, scores: Tensor, counts: Tensor) -> Tensor:
    """The mean of what the weights [b, h, t, s] of a row add up to over the keys that it sees."""
    found = []
    for head in range(scores.shape[1]):
        rows = zip(weights[:, head][counts].double(), scores[:, head][counts].double(), strict=True)
        found.append(_known([float(weight[_visible(row)].sum()) for weight, row in rows if _whole(row)]))
    return torch.tensor(found, dtype=torch.float64)


def blind_rows(scores: Tensor, counts: Tensor) -> Tensor:
    """The number of rows that count and see no key."""
    rows = scores.transpose(0, 1)[:, counts]
    return (rows == -math.inf).all(-1).sum(1).double()


def not_finite_rows(scores: Tensor, counts: Tensor) -> Tensor:
    """The number of rows that count, see a key, and have a score that is NaN or infinite."""
    rows = scores.transpose(0, 1)[:, counts]
    return (rows.isnan() | (rows == math.inf)).any(-1).sum(1).double()


def normalised_entropy_beside_first(scores: Tensor, counts: Tensor, other: Tensor) -> Tensor:
    """`normalised_entropy` over the keys but the sequence's first, of rows that see it and two others.

    Rows with less than a hundredth of their weight beside the first key are left out, whether in `scores` or
    in the `other` scores that these are held against: both are read over the same rows.
    """
    found = []
    for head in range(scores.shape[1]):
        each = []
        for sequence, against, counted in zip(scores[:, head], other[:, head], counts, strict=True):
            first = _first(sequence)
            pairs = zip(sequence[counted], against[counted], strict=True)
            both = [(_beside(row, first), _beside(its, first)) for row, its in pairs]
            each += [mine for mine, its in both if not math.isnan(mine + its)]
        found.append(_known(each))
    return torch.tensor(found, dtype=torch.float64)


def _mean(scores: Tensor, counts: Tensor, of: Callable[[Tensor, Tensor, int], float]) -> Tensor:
    """The mean over rows, of each head, of a number of the visible weights, the scores and the position."""
    found = []
    for head in range(scores.shape[1]):
        each = [
            of(row.softmax(0)[_visible(row)], row, i)
            for sequence, counted in zip(scores[:, head].double(), counts, strict=True)
            for i, row in enumerate(sequence)
            if counted[i] and _whole(row)
        ]
        found.append(_known(each))
    return torch.tensor(found, dtype=torch.float64)


def _known(numbers: list[float]) -> float:
    """The mean of the finite numbers; NaN where there are none."""
    known = [number for number in numbers if math.isfinite(number)]
    return sum(known) / len(known) if known else math.nan


def _first(sequence: Tensor) -> int:
    """The first key that any row sees; 0 where none sees any."""
    return int((sequence != -math.inf).any(0).int().argmax())


def _beside(row: Tensor, first: int) -> float:
    if not _whole(row) or not _visible(row)[first]:
        return math.nan
    kept = _visible(row)
    kept[first] = False
    others = row.double().softmax(0)[kept]
    few = len(others) < 2 or float(others.sum()) < BESIDE
    return math.nan if few else _entropy(others / others.sum()) / math.log(len(others))


def _entropy(p: Tensor) -> float:
    return float(-torch.xlogy(p, p).sum())


def _visible(row: Tensor) -> Tensor:
    return row != -math.inf


def _whole(row: Tensor) -> bool:
    seen = row[_visible(row)]
    return len(seen) > 0 and bool(seen.isfinite().all())
