"""What the attention rows of a head add up to over one sequence: fourteen sums and the largest score.

On a GPU one Triton kernel reads the rows once (row_totals_triton.py). Twin: the torch code below.
"""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.geometry.attention import AttentionRows
from isoscope.kernels.cloud.totals import fused
from isoscope.kernels.row_totals.names import LOWEST


def row_totals(rows: AttentionRows, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Σ of each of `TOTALS` over rows [b, h, t] that count [b, t], [14, b, h]; the largest score, [b, h].

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
    sums = [torch.where(where & x.isfinite(), x, 0).sum(2, dtype=torch.float64) for x, where in wanted]
    scores = torch.where(mine, rows.max_score.double(), LOWEST)
    nothing = scores.new_full(scores.shape[:2], LOWEST)
    return torch.stack(sums), scores.amax(2) if scores.shape[2] else nothing
