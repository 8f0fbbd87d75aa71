"""How often tokens occur in the data, held against their rows of a vocabulary matrix.

Where rare tokens are pushed together (Gao et al. 2019; Biś et al. 2021) their rows lie further along the
mean, and differ in norm. Every type that occurs is one observation; ranks are compared.
"""

from __future__ import annotations

import math

import torch
from scipy.stats import norm as gaussian
from scipy.stats import spearmanr
from torch import Tensor

from isoscope.data.batch import Batch
from isoscope.data.counting import select_counted
from isoscope.measures.base import undefined
from isoscope.results.reading import Reading

LEAST = 10  # token types: fewer have no rank correlation worth a number


def token_counts(batch: Batch, batch_axis: int = 0) -> Tensor | None:
    """How often each token id stands at a position that counts, [largest id + 1]; None without tokens."""
    tokens = batch.tokens(batch_axis=batch_axis)
    if tokens is None:
        return None
    kept = select_counted((*tokens.shape, 1), batch, tokens=tokens).token
    return None if kept is None else torch.bincount(kept[kept >= 0])


def added_counts(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """Counts of both, the shorter at the front of the longer; None is none."""
    if one is None or other is None:
        return other if one is None else one
    short, long = sorted((one, other), key=len)
    total = long.clone()
    total[: len(short)] += short
    return total


def frequency_readings(matrix: Tensor, counts: Tensor) -> dict[str, Reading]:
    """Spearman's correlation of frequency with ‖w‖ and with w·w̄/‖w̄‖, over the types that occur.

    `matrix` [|V|, d]; w̄ is the mean of all finite rows. Rows that are not finite are left out.
    """
    finite = matrix.isfinite().all(1)
    seen = torch.nonzero(counts[: len(matrix)]).flatten()
    seen = seen[finite[seen]]
    rows = matrix[seen].double()
    mean = matrix[finite].double().mean(0)
    along = rows @ (mean / mean.norm()) if float(mean.norm()) else torch.zeros(len(rows))
    often = counts[seen]
    return {
        "frequency_norm_correlation": _spearman(often, rows.norm(dim=1)),
        "frequency_drift_correlation": _spearman(often, along),
    }


def _spearman(often: Tensor, value: Tensor) -> Reading:
    """With its 95 % interval by Fisher's z and the error of Bonett & Wright (2000), √((1 + r²/2)/(n − 3))."""
    n = len(often)
    if n < LEAST:
        return undefined(n, f"fewer than {LEAST} token types occur")
    if any(bool((part == part[0]).all()) for part in (often, value)):
        return undefined(n, "all token types occur equally often, or all rows are alike")
    found = min(max(float(spearmanr(often, value).statistic), -1.0), 1.0)
    if abs(found) == 1:
        return Reading(found, n, 0.0, found, found)
    reach = float(gaussian.ppf(0.975)) * math.sqrt((1 + found**2 / 2) / (n - 3))
    low, high = (math.tanh(math.atanh(found) + side * reach) for side in (-1, 1))
    return Reading(found, n, 0.0, low, high)
