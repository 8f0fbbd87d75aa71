"""The plane of trace and scale of W, every head a point in it, the regimes of Bao et al. 2024 as grounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.plot.select import one_model, probed, readings_of
from isoscope.show.charts import Chart
from isoscope.show.draw.matplotlib.sheet import shown
from isoscope.show.figures.weights import planes
from isoscope.show.figures.weights.planes import Pairs, plane_frame
from isoscope.show.measures import Told
from isoscope.show.readings import QUERY_KEY, at_last
from isoscope.show.regimes import TRACES

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plane(
    frame: pd.DataFrame,
    *,
    measure: str = "trace",
    length: int | None = None,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the heads of one model by trace and scale of W; `measure` may be `trace_on_data`.

    `length` is the T of the regimes; without it the place of even attention, which hangs on it, is left out.
    """
    return shown(plane_chart(frame, measure, length), ax, legend=legend)


def plane_chart(frame: pd.DataFrame, measure: str, length: int | None, title: str = "") -> Chart:
    """The chart that `plane` draws."""
    if measure not in TRACES:
        raise unknown_name("trace", measure, TRACES)
    pairs = _pairs(frame, measure)
    return planes.plane(pairs, plane_frame(pairs), length).named(title)


def _pairs(frame: pd.DataFrame, measure: str) -> Pairs:
    """The trace and the scale of every head that has both."""
    traces = at_last(one_model(readings_of(frame, measure, heads=True, kinds=QUERY_KEY)))
    rows = probed(frame)
    if not (rows["measure"] == TRACES[measure]).any():
        raise IsoscopeError(f"the plane takes {TRACES[measure]} beside {measure}; these rows have none.")
    sizes = at_last(one_model(readings_of(frame, TRACES[measure], heads=True, kinds=QUERY_KEY)))
    scales = {(r.kind, r.layer, r.head): r for r in sizes if r.known and r.value > 0}
    pairs = [(r, scales[at]) for r in traces if r.known and (at := (r.kind, r.layer, r.head)) in scales]
    if not pairs:
        raise IsoscopeError(f"there is nothing to draw: no head has both {measure} and {TRACES[measure]}.")
    return pairs
