"""What a contrast found: differences from the reference with their intervals, and the trials behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.formatting import short
from isoscope.kinds.contrast.figures import (
    colours_of,
    difference_from,
    differences_chart,
    is_driven,
    printable,
    trials_chart,
)
from isoscope.plot.select import titled
from isoscope.show.charts import Chart
from isoscope.show.draw.matplotlib.sheet import shown
from isoscope.show.measures import Told

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isoscope.lab.contrast.fit import Fitted


def contrast(
    frame: pd.DataFrame,
    measure: str | None = None,
    *,
    reference: str | None = None,
    layer: int = 0,
    ax: Axes | None = None,
    told: Told | None = None,
) -> Axes:
    """Draw how every arm differs from the reference, a dot with its 95 % interval, hollow where it holds 0.

    `frame` has the rows of a contrast, `reference` is an arm (else the first), layer 0 the mean over layers.
    """
    return shown(contrast_chart(fitted(frame, reference), measure, told, layer=layer), ax, legend=False)


def contrast_chart(found: Fitted, measure: str | None, told: Told | None, *, layer: int = 0) -> Chart:
    """The chart that `contrast` draws, of what was fitted."""
    measure = _measure(found, measure, layer)
    own = found.differences[(found.differences["layer"] == layer) & (found.differences["measure"] == measure)]
    points = found.points[(found.points["layer"] == layer) & (found.points["measure"] == measure)]
    mean = float(points.loc[points["arm"] == found.arms[0], "value"].mean())
    of = difference_from(found.arms[0], None)
    chart = differences_chart(own, found.arms[1:], colours_of(found.arms))
    return chart.named(titled(measure, told), x=of if is_driven(found.lines) else f"{of} ({short(mean)})")


def trials(
    frame: pd.DataFrame,
    measure: str | None = None,
    *,
    reference: str | None = None,
    layer: int = 0,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw every trial against the entropy of its attention, with the line of each arm.

    The entropies that every arm reached are shaded; that is where arms are compared.
    """
    return shown(against_entropy(fitted(frame, reference), measure, told, layer=layer), ax, legend=legend)


def against_entropy(found: Fitted, measure: str | None, told: Told | None, *, layer: int = 0) -> Chart:
    """The chart that `trials` draws, of what was fitted."""
    measure = _measure(found, measure, layer)
    points, lines = (
        each[(each["layer"] == layer) & (each["measure"] == measure)] for each in (found.points, found.lines)
    )
    if points["entropy"].isna().all():
        raise IsoscopeError("there is nothing to draw: no trial has an entropy of attention.")
    lines = lines if is_driven(found.lines) else lines.iloc[:0]
    chart = trials_chart(points, lines, found.arms)
    return replace(chart, x="normalised entropy", y=titled(measure, told))


def fitted(frame: pd.DataFrame, reference: str | None, arms: Sequence[str] = ()) -> Fitted:
    """What the trials of these rows show."""
    from isoscope.lab.contrast.fit import fit

    named = [str(name) for name in frame["model"].drop_duplicates()]
    if not named:
        raise IsoscopeError("there is nothing to draw: these rows hold no trial.")
    if reference is not None and reference not in named:
        raise unknown_name("arm in these rows", reference, named)
    return fit(frame, reference or named[0], arms)


def drawable(found: Fitted) -> list[str]:
    """The quantities that a figure shows first, then all others that have a value."""
    whole = found.points[found.points["layer"] == 0]
    first = printable(whole, is_driven(found.lines))
    every = [str(m) for m in whole.loc[whole["value"].notna(), "measure"].drop_duplicates()]
    return [*first, *(m for m in every if m not in first)]


def _measure(found: Fitted, measure: str | None, layer: int) -> str:
    there = drawable(found)
    if not there:
        raise IsoscopeError("there is nothing to draw: no quantity of these trials has a value.")
    if measure is not None and measure not in there:
        raise unknown_name("quantity of these trials", measure, there)
    layers = sorted(set(found.points["layer"]))
    if layer not in layers:
        raise IsoscopeError(
            f"no layer {layer} is among these trials; there are: {', '.join(map(str, layers))}."
        )
    return measure or there[0]
