"""Where a block is normed, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import nn

Build = Callable[[int], nn.Module]


@dataclass(frozen=True)
class Norm:
    """x ↦ after(x + inner(f(before(x)))), and one norm more, `last`, behind all blocks."""

    name: str
    formula: str
    before: Build
    inner: Build
    after: Build
    last: Build


_none, _unshifted = nn.Identity, partial(nn.LayerNorm, bias=False)  # an identity takes a width, and has none


NORMS = (
    Norm("pre", "x + f(LN(x))", nn.LayerNorm, _none, _none, nn.LayerNorm),
    Norm("post", "LN(x + f(x))", _none, _none, nn.LayerNorm, _none),
    Norm("rms", "x + f(RMS(x))", nn.RMSNorm, _none, _none, nn.RMSNorm),
    Norm("sandwich", "x + LN(f(LN(x)))", nn.LayerNorm, nn.LayerNorm, _none, nn.LayerNorm),
    Norm("unshifted", "x + f(LN(x)), LN without β", _unshifted, _none, _none, _unshifted),
    Norm("none", "x + f(x)", _none, _none, _none, _none),
)
