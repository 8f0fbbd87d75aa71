"""The colours of curves, as pairs: the first for white paper, the second for a dark screen.

Models have the colours of Okabe and Ito, steps those of viridis, the last of which stands out on either
ground. No colour may be the first of two different pairs, since the page swaps each first for its second.
"""

from __future__ import annotations

Pair = tuple[str, str]
INK: Pair = ("#1f2328", "#e6e6e3")
SOFT: Pair = ("#6a7076", "#9aa0a6")
GRID: Pair = ("#e7e6e2", "#30343a")
PAPER: Pair = ("#fefefd", "#16181c")
ALARM: Pair = ("#b3261e", "#ff8a80")

MODELS: tuple[Pair, ...] = (
    ("#0072b2", "#56a9e0"), ("#d55e00", "#f0803c"), ("#009e73", "#2fc297"), ("#b0568a", "#dd92bb"),
    ("#c98500", "#e6a91f"), ("#3b9bd4", "#8accf3"), ("#555555", "#bbbbbb"),
)  # fmt: skip
"""Okabe and Ito's, yellow left out and the pale ones a shade darker on paper."""

MEASURES = MODELS[2:5]
"""For measures in one panel, so that none has the colour of the first or second model beside it."""

PARTS: dict[str, Pair] = {
    "position": ("#1f3f6e", "#a9cdf5"), "key": ("#d65f06", "#f08a3c"),
    "query position": ("#3a99d2", "#2477b1"), "content": ("#8a2fc4", "#cf3df5"),
    "mixed": ("#8a9097", "#8f959b"), "no shares": GRID,
}  # fmt: skip
"""Parts of attention scores, in their order; every kind of colour vision tells them apart."""

CURVES = {
    "without key": PARTS["key"], "without position": PARTS["position"], "of content": PARTS["content"],
    "without position and key": MODELS[3], "without a random vector": SOFT,
}  # fmt: skip
"""Of curves that have a colour of their own wherever they are drawn."""

AMOUNT: tuple[Pair, ...] = (
    ("#f1f5f9", "#1f2730"), ("#c3d8eb", "#1f435f"), ("#83b1d9", "#2a6a9b"), ("#3a7fb9", "#56a0d6"),
    ("#0d3f75", "#cfe8ff"),
)  # fmt: skip
"""From nothing to all, for maps: one hue, so lightness alone tells; more stands out more on either ground."""

SIGNED: tuple[Pair, ...] = (
    ("#a04a00", "#ffb066"), ("#e0a878", "#94622f"), ("#f4f4f2", "#23272d"), ("#86b0da", "#3a6994"),
    ("#0b4a8f", "#8fcaff"),
)  # fmt: skip
"""From −1 through 0 to 1, for maps: orange and blue, which every kind of colour vision tells apart."""

_VIRIDIS = (
    "#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c",
    "#22a884", "#44bf70", "#7ad151", "#bddf26", "#fde725",
)  # fmt: skip
_ON_PAPER = (0.72, 0.0)
_ON_DARK = (0.38, 1.0)


def sequence(count: int) -> list[Pair]:
    """`count` colours in order, for steps."""
    at = [i / (count - 1) for i in range(count)] if count > 1 else [1.0] * count
    return [(_viridis(_ON_PAPER, x), _viridis(_ON_DARK, x)) for x in at]


def _viridis(ends: tuple[float, float], x: float) -> str:
    at = (ends[0] + (ends[1] - ends[0]) * x) * (len(_VIRIDIS) - 1)
    below = min(int(at), len(_VIRIDIS) - 2)
    a, b = (bytes.fromhex(_VIRIDIS[i][1:]) for i in (below, below + 1))
    mixed = (round(p + (q - p) * (at - below)) for p, q in zip(a, b, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)
