"""Token frequency held against the rows of a vocabulary matrix, and against what would move them next.

The theory (Gao et al. 2019; Biś et al. 2021): a token that is not the answer is pushed away from every hidden
state, so rare tokens are all pushed the same way. The gradient of the output rows is G = (P − Y)ᵀH/n, P [n,
|V|] what the model answers, Y the right answers, H [n, d] the hidden states. Each row stands for its token
type, as often as it occurs in the data, half a time where it never does.
"""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.measures.table import choose
from isoscope.results.reading import Reading
from isoscope.stats.seen import mix
from isoscope.stats.types import Types

BANDS = ("rare", "middle", "frequent")
BY_BAND = tuple(f"{kind}_{band}" for kind in ("mean_cosine", "relative_drift") for band in BANDS)
OF_FREQUENCY = (
    *BY_BAND, "frequency_correlation", "frequency_norm_correlation", "frequency_drift_correlation"
)  # fmt: skip
"""All that is read of vectors by token frequency."""
MOST = 2048  # types of a vocabulary that are read by band: those of the smallest hashes
_AT_ONCE = 1024  # hidden states


class Gradient:
    """The gradient of the loss by the output rows, batch after batch."""

    def __init__(self, matrix: Tensor, bias: Tensor | None) -> None:
        self.matrix, self.bias = matrix.float(), bias
        self.total = torch.zeros_like(self.matrix)
        self.count = 0

    def add(self, states: Tensor, tokens: Tensor) -> None:
        """Fold hidden states [b, t, d], each of which answers for the next of `tokens` [b, t]."""
        hidden = states[:, :-1].flatten(0, 1).float()
        answers = tokens[:, 1:].flatten()
        for part, right in zip(hidden.split(_AT_ONCE), answers.split(_AT_ONCE), strict=True):  # type: ignore[no-untyped-call]
            logits = part @ self.matrix.T
            share = (logits if self.bias is None else logits + self.bias.to(logits)).softmax(1)
            share[torch.arange(len(right)), right] -= 1
            self.total += share.T @ part
        self.count += len(hidden)

    @property
    def mean(self) -> Tensor:
        """G [|V|, d]."""
        return self.total / max(1, self.count)


def as_types(matrix: Tensor, counts: Tensor) -> Types:
    """Rows [|V|, d] as the record of token types that occur `counts` [|V|] times, in one context each."""
    often = torch.zeros(len(matrix), dtype=torch.float64)
    known = min(len(counts), len(matrix))
    often[:known] = counts[:known].double()
    often = often.clamp_min(0.5)
    kept = mix(torch.arange(len(matrix))).argsort()[:MOST]
    rows, mine = matrix[kept].double(), often[kept]
    norm = rows.norm(dim=1)
    unit = torch.where(norm[:, None] > 0, rows / norm[:, None].clamp_min(1e-300), 0.0)
    pointing = torch.where(norm > 0, mine, 0.0)
    sums = (rows * mine[:, None], norm * mine, pointing, unit * mine[:, None], pointing**2)
    return Types(often.sum(), kept, mine, *sums, (unit**2).sum(1) * mine**2)


def bands(matrix: Tensor, counts: Tensor) -> dict[str, Reading]:
    """A and relative drift by band of frequency, each type one vector; intervals over types."""
    record = as_types(matrix, counts)
    return {measure.name: measure.reading({Types: record}, {}) for measure in choose(BY_BAND)}


def along_drift(gradient: Tensor, matrix: Tensor) -> float:
    """cos(−Σg, Σw): 1 where the next step moves all rows together further along their mean, −1 back."""
    step, mean = -gradient.double().sum(0), matrix.double().sum(0)
    return float(step @ mean / (step.norm() * mean.norm()))
