"""The figures of a sweep as a paper prints them: trajectories by layer, and clouds as small multiples.

Vector graphics, text as text, the same file for the same rows. Trajectories have one panel a quantity, as
`steps_print` draws it. Clouds have a row a head and a column a step, all steps of a head on the same axes;
each is as large as it needs to be, since vectors grow a hundredfold, and says how large.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from isoscope.kinds.sweep.clouds import by_step
from isoscope.kinds.sweep.rows import SweepRows, changes_of
from isoscope.show.draw.matplotlib.style import FORMATS, folded, legend_below, saved, style
from isoscope.show.figures.clouds_print import draw_cloud, pulled
from isoscope.show.figures.steps_print import draw_lines
from isoscope.show.figures.trajectories import depths, spaced
from isoscope.show.measures import Told, title_of
from isoscope.show.readings import ATTENTION, PLACES, read

PRINTED = (
    "loss", "mean_cosine_between", "relative_drift", "participation_ratio_split", "normalised_entropy",
    "drift_share", "query_relative_drift", "query_key_cosine",
)  # fmt: skip
HEADS, STEPS = 4, 6
_ACROSS = 4
_WIDTH, _HEIGHT, _SIDE = 1.9, 1.6, 1.15  # inches of a panel, and of a cloud
_LETTERS = 26


def printed(read_: SweepRows, told: Told) -> dict[str, bytes]:
    """The figures by name of their file; empty where there is nothing to draw, or no matplotlib."""
    try:
        import matplotlib as mpl
    except ImportError:
        return {}
    with mpl.rc_context(style()):
        made = {"trajectories": _trajectories(read_, told), "clouds": _clouds(by_step(read_.points))}
        return {
            f"{name}.{kind}": saved(figure, kind)
            for name, figure in made.items()
            if figure is not None
            for kind in FORMATS
        }


def _trajectories(read_: SweepRows, told: Told) -> Any:
    from matplotlib.figure import Figure

    rows, axis = read_.rows, read_.axis
    own = rows[rows["head"].isna() & rows["measure"].isin(PRINTED) & rows["step"].isin(axis.steps)]
    readings = [r for r in read(own) if r.known and r.kind in (*PLACES, *ATTENTION, "training")]
    measures = [m for m in PRINTED if len({r.step for r in readings if r.measure == m}) > 1]
    if not measures:
        return None
    places, changes = depths(readings), changes_of(read_.between)
    columns = min(_ACROSS, len(measures))
    lines = -(-len(measures) // columns)
    figure = Figure(figsize=(_WIDTH * columns + 0.3, _HEIGHT * lines + 0.3), layout="constrained")
    panels: Any = figure.subplots(lines, columns, squeeze=False)
    for number, panel in enumerate(panels.flat):
        if number >= len(measures):
            panel.set_axis_off()
            continue
        measure = measures[number]
        mine = [r for r in readings if r.measure == measure]
        draw_lines(panel, mine, axis, places, [c for c in changes if c.measure == measure])
        panel.set_title(folded(title_of(measure, told), _LETTERS), loc="left")
    legend_below(figure, panels.flat)
    return figure


def _clouds(points: pd.DataFrame) -> Any:
    """A few heads at a few steps, on shared axes."""
    from matplotlib.figure import Figure

    if points.empty:
        return None
    own = points[(points["picture"] == "shared") & points["series"].isin(["query", "key"])]
    units = sorted(set(own["unit"]))
    shown = [units[i] for i in spaced(list(range(len(units))), STEPS)]
    heads = pulled(own[own["unit"] == units[-1]])[:HEADS]
    figure = Figure(figsize=(_SIDE * len(shown) + 0.5, _SIDE * len(heads) + 0.5), layout="constrained")
    panels: Any = figure.subplots(len(heads), len(shown), squeeze=False)
    for line, (kind, layer, head) in enumerate(sorted(heads)):
        mine = own[(own["kind"] == kind) & (own["layer"] == layer) & (own["head"] == head)]
        for column, unit in enumerate(shown):
            draw_cloud(panels[line][column], mine[mine["unit"] == unit])
            if line == 0:
                panels[line][column].set_title(f"step {int(unit.removeprefix('step ')):,}")
        panels[line][0].set_ylabel(f"layer {layer} head {head}")
    legend_below(figure, panels.flat)
    return figure
