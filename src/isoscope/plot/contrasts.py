"""What a contrast found: differences from the reference with their intervals, and the trials behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.formatting import short
from isoscope.kinds.contrast.printed import (
    colours_of,
    difference_from,
    draw_differences,
    draw_trials,
    is_driven,
    printable,
)
from isoscope.plot.axes import finished, opened, titled
from isoscope.show.draw.matplotlib.style import folded
from isoscope.show.measures import Told

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isoscope.lab.contrast.fit import Fitted

_LETTERS = 40


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
    return draw_contrast(opened(ax), fitted(frame, reference), measure, layer=layer, told=told)


def draw_contrast(
    ax: Any, found: Fitted, measure: str | None = None, *, layer: int = 0, told: Told | None = None
) -> Axes:
    """The same of what was fitted."""
    measure = _measure(found, measure, layer)
    own = found.differences[(found.differences["layer"] == layer) & (found.differences["measure"] == measure)]
    draw_differences(ax, own, found.arms[1:], colours_of(found.arms))
    ax.set_title(folded(titled(measure, told), _LETTERS), loc="left")
    points = found.points[(found.points["layer"] == layer) & (found.points["measure"] == measure)]
    mean = float(points.loc[points["arm"] == found.arms[0], "value"].mean())
    of = difference_from(found.arms[0], None)
    ax.set_xlabel(of if is_driven(found.lines) else f"{of} ({short(mean)})")
    return finished(ax, legend=False)


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
    found = fitted(frame, reference)
    return draw_against_entropy(opened(ax), found, measure, layer=layer, told=told, legend=legend)


def draw_against_entropy(
    ax: Any,
    found: Fitted,
    measure: str | None = None,
    *,
    layer: int = 0,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """The same of what was fitted."""
    measure = _measure(found, measure, layer)
    points, lines = (
        each[(each["layer"] == layer) & (each["measure"] == measure)] for each in (found.points, found.lines)
    )
    if points["entropy"].isna().all():
        raise IsoscopeError("there is nothing to draw: no trial has an entropy of attention.")
    lines = lines if is_driven(found.lines) else lines.iloc[:0]
    draw_trials(ax, points, lines, colours_of(found.arms))
    ax.set_ylabel(folded(titled(measure, told), _LETTERS))
    return finished(ax, legend=legend)


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
