"""What the attention rows of a head add up to over one sequence: fourteen sums and the largest score.

On a GPU one Triton kernel reads the rows once (triton.py). Twin: the torch code below.
"""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.geometry.attention import AttentionRows
from isoscope.geometry.sharpness import BESIDE
from isoscope.kernels.cloud.totals import fused
from isoscope.kernels.row_totals.names import LOWEST


def row_totals(rows: AttentionRows, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Σ of each of `TOTALS` over rows [b, h, t] that count [b, t], [14, b, h]; the largest score, [b, h].

    Rows and sums may have an axis of sites before b.
    A row that sees no key, or whose scores are not finite, is counted as such and left out of the rest; of
    the other sums a value that is not finite is left out.
    """
    if rows.entropy.numel() and fused(rows.entropy):
        from isoscope.kernels.row_totals.triton import fused_totals

        return fused_totals(rows, counts)
    visible, entropy = rows.visible.double(), rows.entropy.double()
    counted = counts[:, None, :].expand_as(visible)
    usable = entropy.isfinite()
    mine = counted & usable
    several, sunk = mine & (visible > 1), mine & rows.first_key.isfinite()
    one, log_visible = torch.ones_like(visible), visible.log()
    wanted = (
        (one, mine), (entropy, mine), (log_visible, mine),
        (one, several), (entropy / log_visible, several),
        (rows.largest, mine), (1 / rows.collision.double(), mine), (rows.score_variance, mine),
        (rows.distance, mine),
        (one, sunk), (rows.first_key, sunk), (1 / visible, sunk),
        (one, counted & (visible == 0)), (one, counted & (visible > 0) & ~usable),
    )  # fmt: skip
    sums = [torch.where(where & x.isfinite(), x, 0).sum(-1, dtype=torch.float64) for x, where in wanted]
    scores = torch.where(mine, rows.max_score.double(), LOWEST)
    nothing = scores.new_full(scores.shape[:-1], LOWEST)
    return torch.stack(sums), scores.amax(-1) if scores.shape[-1] else nothing


def split_totals(
    rows: AttentionRows, without: AttentionRows, drift: Tensor, behind: Tensor, counts: Tensor
) -> Tensor:
    """Σ of each of `SPLIT` over rows [b, h, t] that count [b, t], [7, b, h].

    `without` are the rows without the mean query, `drift` is the variance of its scores, and `behind`, which
    broadcasts to [b, h, t], the number of independent queries that the mean is of. A row whose parts are not
    both finite is left out of the first four sums; 1/(behind + 1) may be NaN there.
    """
    if drift.numel() and fused(drift):
        from isoscope.kernels.row_totals.triton import fused_split

        return fused_split(rows, without, drift, behind, counts)
    whole, rest = rows.score_variance.double(), without.score_variance.double()
    both = whole.isfinite() & rest.isfinite() & drift.isfinite() & counts[:, None]
    one = torch.ones_like(rest)
    chance = torch.where(both, 1 / (behind.double() + 1), 0).sum(-1)
    beside, beside_without = _beside_first(rows), _beside_first(without)
    known = beside.isfinite() & beside_without.isfinite() & counts[:, None]
    wanted = (drift, both), (rest, both), (one, both), (beside, known), (beside_without, known), (one, known)
    sums = [torch.where(where, x, 0).sum(-1, dtype=torch.float64) for x, where in wanted]
    return torch.stack([*sums[:3], chance, *sums[3:]])


def _beside_first(rows: AttentionRows) -> Tensor:
    """Normalised entropy over the keys but the first: ((H + p log p)/(1 − p) + log(1 − p))/log(v − 1).

    p is the weight of the first key. NaN where it is not seen, fewer than two keys are left, or less than a
    hundredth of the weight: there rounding would decide.
    """
    weight = rows.first_key.double().clamp(0, 1)
    others = 1 - weight
    left = (rows.entropy.double() + torch.xlogy(weight, weight)) / others + others.log()
    few = (rows.visible < 3) | (others < BESIDE)
    return torch.where(few, torch.nan, left / (rows.visible.double() - 1).log())
