"""The figures of a sweep as a paper prints them: trajectories by layer, and clouds as small multiples.

Vector graphics, text as text, the same file for the same rows. Trajectories have one panel a quantity, a line
a layer from the first (light) to the last (dark), change points as marks on the bar of their interval. Clouds
have a row a head and a column a step, all steps of a head on the same axes; each is as large as it needs to
be, since vectors grow a hundredfold, and says how large.
"""

from __future__ import annotations

import textwrap
from typing import Any

import pandas as pd

from isoscope.report.colours import INK, SOFT
from isoscope.report.contrast_print import _STYLE, FORMATS, _saved
from isoscope.report.families import Told, title_of
from isoscope.report.numbers import short
from isoscope.report.readings import ATTENTION, PLACES, Reading, read
from isoscope.report.step_axis import StepAxis
from isoscope.report.sweep_clouds import by_step
from isoscope.report.sweep_rows import Changed, SweepRows, changes_of
from isoscope.report.trajectories import Depths, depths, spaced

PRINTED = (
    "loss", "mean_cosine_between", "relative_drift", "participation_ratio_split", "normalised_entropy",
    "drift_share", "query_relative_drift", "query_key_cosine",
)  # fmt: skip
HEADS, STEPS = 4, 6
_ACROSS = 4
_WIDTH, _HEIGHT, _SIDE = 1.9, 1.6, 1.15  # inches of a panel, and of a cloud
_LETTERS = 26
_SYMBOLS = {"jump": "D", "turn": "^"}


def printed(read_: SweepRows, told: Told) -> dict[str, bytes]:
    """The figures by name of their file; empty where there is nothing to draw, or no matplotlib."""
    try:
        import matplotlib as mpl
    except ImportError:
        return {}
    with mpl.rc_context(_STYLE):
        made = {"trajectories": _trajectories(read_, told), "clouds": _clouds(by_step(read_.points))}
        return {
            f"{name}.{kind}": _saved(figure, kind)
            for name, figure in made.items()
            if figure is not None
            for kind in FORMATS
        }


def _trajectories(read_: SweepRows, told: Told) -> Any:
    from matplotlib.figure import Figure

    rows, axis = read_.rows, read_.axis
    own = rows[rows["head"].isna() & rows["measure"].isin(PRINTED) & rows["step"].isin(axis.steps)]
    readings = [r for r in read(own) if r.finite and r.kind in (*PLACES, *ATTENTION, "training")]
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
        _lines(panel, mine, axis, places, [c for c in changes if c.measure == measure])
        panel.set_title(textwrap.fill(title_of(measure, told), _LETTERS), loc="left")
    _legend(figure, places)
    return figure


def _lines(panel: Any, own: list[Reading], axis: StepAxis, places: Depths, changes: list[Changed]) -> None:
    for place in sorted({r.place for r in own}):
        line = sorted((r for r in own if r.place == place), key=lambda r: r.step or 0)
        colour = INK[0] if line[0].kind == "training" else places.colours[place][0]
        panel.plot([axis.at(r.step or 0) for r in line], [r.value for r in line], color=colour, lw=0.9)
        at = {r.step: r for r in line}
        for change in changes:
            if (change.kind, change.layer) == (line[0].kind, line[0].layer) and change.step in at:
                y = at[change.step].value
                ends = [axis.at(change.low), axis.at(change.high)]
                panel.plot(ends, [y, y], color=INK[0], lw=2.4, alpha=0.3, solid_capstyle="butt")
                panel.plot(
                    axis.at(change.step), y, _SYMBOLS[change.what], color=colour, ms=3.4, mec=INK[0], mew=0.5
                )
    ticks = spaced(axis.ticks(), 5)
    panel.set_xticks([axis.at(step) for step in ticks], [f"{step:,}" for step in ticks])
    panel.set_xlim(*axis.range)
    panel.set_xlabel("step")


def _legend(figure: Any, places: Depths) -> None:
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], color=pair[0], lw=1.4, label=name) for name, pair in places.key]
    marks += [
        Line2D([], [], color=SOFT[0], marker=mark, lw=0, ms=4, label=name) for name, mark in _SYMBOLS.items()
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=min(9, len(marks)), frameon=False)


def _clouds(points: pd.DataFrame) -> Any:
    """A few heads at a few steps, on shared axes."""
    from matplotlib.figure import Figure

    if points.empty:
        return None
    own = points[(points["picture"] == "shared") & points["series"].isin(["query", "key"])]
    units = sorted(set(own["unit"]))
    shown = [units[i] for i in spaced(list(range(len(units))), STEPS)]
    heads = _pulled(own[own["unit"] == units[-1]])[:HEADS]
    figure = Figure(figsize=(_SIDE * len(shown) + 0.5, _SIDE * len(heads) + 0.5), layout="constrained")
    panels: Any = figure.subplots(len(heads), len(shown), squeeze=False)
    for line, (kind, layer, head) in enumerate(sorted(heads)):
        mine = own[(own["kind"] == kind) & (own["layer"] == layer) & (own["head"] == head)]
        for column, unit in enumerate(shown):
            _cloud(panels[line][column], mine[mine["unit"] == unit])
            if line == 0:
                panels[line][column].set_title(f"step {int(unit.removeprefix('step ')):,}")
        panels[line][0].set_ylabel(f"layer {layer} head {head}")
    _legend_of_clouds(figure)
    return figure


def _pulled(last: pd.DataFrame) -> list[tuple[str, int, int]]:
    """Heads by how far their mean query and mean key lie from the origin, against how far points do."""
    found = {}
    for (kind, layer, head), own in last.groupby(["kind", "layer", "head"]):
        means = own.groupby("series")[["x", "y"]].mean()
        size = float((own[["x", "y"]] ** 2).sum(axis=1).mean()) or 1.0
        dot = float(means.prod(axis=0).sum()) if len(means) == 2 else 0.0
        found[str(kind), int(str(layer)), int(str(head))] = abs(dot) / size
    return sorted(found, key=lambda place: -found[place])


def _cloud(panel: Any, own: pd.DataFrame) -> None:
    from isoscope.report.clouds import SERIES

    far = 1.08 * float(own[["x", "y"]].abs().to_numpy().max()) or 1.0

    panel.axhline(0, color=SOFT[0], lw=0.4)
    panel.axvline(0, color=SOFT[0], lw=0.4)
    for series, (_, (colour, _), symbol) in SERIES.items():
        mine = own[own["series"] == series]
        mark = "o" if symbol == "circle" else "D"
        panel.plot(mine["x"], mine["y"], mark, color=colour, ms=1.8, mew=0, alpha=0.7)
        if len(mine):
            panel.plot(mine["x"].mean(), mine["y"].mean(), mark, color=colour, ms=4.5, mec=INK[0], mew=0.6)
    panel.set(xlim=(-far, far), ylim=(-far, far), aspect="equal", xticks=[], yticks=[])
    panel.text(
        0.98, 0.02, f"±{short(far, 2)}", transform=panel.transAxes, ha="right", color=SOFT[0], fontsize=6
    )


def _legend_of_clouds(figure: Any) -> None:
    from matplotlib.lines import Line2D

    from isoscope.report.clouds import SERIES

    marks = [
        Line2D([], [], color=pair[0], marker="o" if symbol == "circle" else "D", lw=0, ms=4, label=name)
        for name, pair, symbol in SERIES.values()
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=2, frameon=False)
