"""The forms of one head's weights: its eigenvalues in the complex plane, ρ(t), and where it attends.

They are empty: `weights.js` fills them with the head that is picked. Predicted ρ and measured attention stand
in two panels, never on one axis: ρ is a probability, attention is given in units of an even one, and only
the places where the two are high or low can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from isoscope.show.charts import Axis, Chart, Series, Told
from isoscope.show.colours import MEASURES, MODELS, SOFT, Pair

HEIGHT = 300

THIS, OTHERS = ("this head", MODELS[0]), ("the layer’s other heads", SOFT)
LINES: dict[str, dict[str, tuple[str, Pair]]] = {
    "predicted": {"predicted": ("W of this head", MODELS[0]), "random": ("random W", SOFT)},
    "measured": {"measured": ("measured", MEASURES[0]), "softmax": ("of a walk through W", MEASURES[2])},
}
"""The two panels of lines, and the series of each with its label and colour."""

_MARGIN = {"l": 48, "r": 8, "t": 8, "b": 40}
_DASHES = {"random": "dash", "softmax": "dot"}

Points = Mapping[str, tuple[Sequence[float], Sequence[float]]]
"""x and y of each series."""
_FORM = ([0.0], [0.0])


def eigenvalues(points: Points | None = None) -> Chart:
    """The eigenvalues of the layer's other heads, then those of the chosen one; equal scales."""
    series = [
        Series(
            name, *(points or {}).get(name, _FORM), style="dots", size=size, colour=pair,
            opacity=0.5 if size == 3 else 0.9, pattern=Told("", name, ["{x:.3g}, {y:.3g} i"]),
        )
        for (name, pair), size in ((OTHERS, 3), (THIS, 6))
    ]  # fmt: skip
    up = Axis("imaginary part", zero=True, most=5, grid=False)
    across = Axis("real part", zero=True, most=5, line=False)
    return Chart("", across, up, series, equal=True, height=HEIGHT, margin=_MARGIN)


def lines(panel: str, points: Points | None = None) -> Chart:
    """One line a series along the keys: "predicted" from 0 to 1, "measured" with even attention at 1.

    Without points it is a form, in which the page's script puts those of the head that is picked.
    """
    series = [
        Series(
            name, *(points or {}).get(one, _FORM), colour=pair, dash=_DASHES.get(one, "solid"),
            pattern=Told("", f"{name}: {{y:.3g}}", ["at {x:.2f}"]),
        )
        for one, (name, pair) in LINES[panel].items()
        if points is None or one in points
    ]  # fmt: skip
    up = Axis("ρ, chance to pass", range=(0, 1.04))
    if panel == "measured":
        up = Axis("attention, even = 1", floor=True)
        series.append(Series("even", [0, 1], [1, 1], colour=SOFT, dash="dash", width=1.5))
    across = Axis("place of the key, t/T", range=(0, 1), most=5)
    return Chart("", across, up, series, height=HEIGHT, margin=_MARGIN)
