"""The forms of one head's weights: its eigenvalues in the complex plane, ρ(t), and where it attends.

They are empty: `weights.js` fills them with the head that is picked. Predicted ρ and measured attention stand
in two panels, never on one axis: ρ is a probability, attention is given in units of an even one, and only
the places where the two are high or low can be compared.
"""

from __future__ import annotations

import plotly.graph_objects as go

from isoscope.show.colours import GRID, MEASURES, MODELS, SOFT, Pair
from isoscope.show.draw.plotly.marks import blank

HEIGHT = 300

THIS, OTHERS = ("this head", MODELS[0]), ("the layer’s other heads", SOFT)
LINES: dict[str, dict[str, tuple[str, Pair]]] = {
    "predicted": {"predicted": ("W of this head", MODELS[0]), "random": ("random W", SOFT)},
    "measured": {"measured": ("measured", MEASURES[0]), "softmax": ("of a walk through W", MEASURES[2])},
}
"""The two panels of lines, and the series of each with its label and colour."""

_PLACE = "place of the key, t/T"
_MARGIN = {"l": 48, "r": 8, "t": 8, "b": 40}


def eigenvalues() -> go.Figure:
    """The eigenvalues of the layer's other heads, then those of the chosen one; equal scales."""
    figure = blank(HEIGHT)
    for (name, pair), size in ((OTHERS, 3), (THIS, 6)):
        figure.add_scatter(
            x=[0],
            y=[0],
            mode="markers",
            marker={"size": size, "color": pair[0]},
            opacity=0.5 if size == 3 else 0.9,
            hovertemplate=f"{name}<br>%{{x:.3g}}, %{{y:.3g}} i<extra></extra>",
        )
    figure.update_layout(margin=_MARGIN)
    both = {"showgrid": False, "zeroline": True, "zerolinecolor": GRID[0], "nticks": 5, "tickangle": 0}
    figure.update_xaxes(title={"text": "real part", "standoff": 6}, showline=False, **both)
    figure.update_yaxes(
        title={"text": "imaginary part", "standoff": 6}, scaleanchor="x", scaleratio=1, **both
    )
    return figure


def lines(panel: str) -> go.Figure:
    """One line a series along the keys: "predicted" from 0 to 1, "measured" with even attention at 1."""
    figure = blank(HEIGHT)
    if panel == "measured":
        even = {"color": SOFT[0], "width": 1.5, "dash": "dash"}
        figure.add_shape(type="line", x0=0, x1=1, y0=1, y1=1, line=even, layer="below")
    for series, (name, pair) in LINES[panel].items():
        dash = "dash" if series == "random" else "dot" if series == "softmax" else "solid"
        figure.add_scatter(
            x=[0],
            y=[0],
            mode="lines",
            line={"color": pair[0], "width": 2, "dash": dash},
            hovertemplate=f"{name}: %{{y:.3g}}<br>at %{{x:.2f}}<extra></extra>",
        )
    figure.update_layout(margin=_MARGIN)
    figure.update_xaxes(title={"text": _PLACE, "standoff": 6}, range=[0, 1], nticks=5, tickangle=0)
    if panel == "predicted":
        figure.update_yaxes(title={"text": "ρ, chance to pass", "standoff": 6}, range=[0, 1.04], nticks=6)
    else:
        title = {"text": "attention, even = 1", "standoff": 6}
        figure.update_yaxes(title=title, rangemode="tozero", nticks=6, automargin=True)
    return figure
