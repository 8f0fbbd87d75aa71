"""Figures for print and notebooks: every function draws on matplotlib axes and returns them.

Each takes rows as `frame()` gives them (or points as `points()` does) and an optional `ax`; without one it
opens a figure of its own. `told` is `run.measures`, for titles as the page has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.formatting import listed
from isoscope.kinds.report import figures as figures_of
from isoscope.kinds.sweep.rows import by_step
from isoscope.results.run import Run
from isoscope.results.store import RunFolder
from isoscope.show.draw.matplotlib.sheet import Offered
from isoscope.show.draw.matplotlib.sheet import shown as draw
from isoscope.show.draw.matplotlib.style import style
from isoscope.show.figures import clouds as pictures
from isoscope.show.figures import panels
from isoscope.show.figures.maps import maps_of
from isoscope.show.figures.panels import Panel
from isoscope.show.figures.step_axis import spaced, step_axis
from isoscope.show.figures.trajectories import depths
from isoscope.show.figures.weights import heads as weights
from isoscope.show.measures import FAMILIES, MAIN, MAPS, Told, family_of, shown_in
from isoscope.show.page.page import sections_of
from isoscope.show.page.printed import offered
from isoscope.show.page.training import probed, step_panel, training_of
from isoscope.show.readings import ATTENTION, PLACES, QUERY_KEY, read, unique

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Offered", "clouds", "draw", "eigenvalues", "figures", "heads", "layers", "propagation", "steps", "style",
]  # fmt: skip

_MOST_STEPS = 6
_PLACED = (*PLACES, *ATTENTION, *QUERY_KEY)


def __dir__() -> list[str]:
    return sorted(__all__)


def figures(
    run: RunFolder | pd.DataFrame, points: pd.DataFrame | None = None, told: Told | None = None
) -> dict[str, Offered]:
    """The figures of a run folder by name, the most important first; or those of rows, with their points."""
    if isinstance(run, RunFolder):
        return figures_of(run)
    pictured = None if points is None else _in_units(points)
    shown, rows = Run("training", "", {}, dict(told or {})), _checked(run)
    return offered(sections_of(shown, rows, pictured, training_of(shown, rows, {})))


def layers(
    frame: pd.DataFrame, measure: str | Sequence[str] | None = None, *, ax: Axes | None = None,
    told: Told | None = None, legend: bool = True,
) -> Axes:  # fmt: skip
    """Draw a measure, or several together, along the layers; of one site as dots, of several steps a few."""
    asked = [measure] if isinstance(measure, str) or measure is None else list(measure)
    rows = pd.concat([_rows(frame, one, heads=False) for one in asked])
    shown = sorted(rows.loc[rows["value"].notna(), "step"].dropna().unique())
    if rows["model"].nunique() > 1:
        rows = rows[rows["step"].isna() | (rows["step"] == rows.groupby("model")["step"].transform("max"))]
    elif shown:
        rows = rows[rows["step"].isin(spaced(shown, _MOST_STEPS))]
    named = unique(map(str, rows["measure"]))
    together = (name for name in FAMILIES if all(shown_in(m, name, told or {}) for m in named))
    family = next(together, "") or family_of(named[0], told or {})
    return _drawn(panels.figures(rows, family, told).panels, ax, legend)


def steps(
    frame: pd.DataFrame, measure: str | None = None, *, ax: Axes | None = None, told: Told | None = None,
    legend: bool = True,
) -> Axes:  # fmt: skip
    """Draw a measure of one model along the steps, with intervals and null: one line per layer."""
    rows = _one_model(_rows(frame, measure, heads=False, kinds=(*_PLACED, "training")))
    own = [r for r in read(rows) if r.step is not None]
    if not own:
        raise IsoscopeError("there is nothing to draw along steps: these rows have none.")
    if own[0].kind in (*ATTENTION, *QUERY_KEY):  # of several kinds of attention the first
        own = [r for r in own if r.kind == own[0].kind]
    axis = step_axis(r.step for r in own if r.step is not None)
    places = depths(read(_checked(frame).drop_duplicates(["kind", "layer"])))
    shown = [r for r in own if r.step in axis.steps]
    return _drawn([step_panel(shown, axis, places, told or {}, mapped=False)], ax, legend)


def heads(
    frame: pd.DataFrame, measure: str | None = None, *, kind: str | None = None, ax: Axes | None = None,
    told: Told | None = None,
) -> Axes:  # fmt: skip
    """Draw a map of heads, layers down and heads across; of several steps the last, of `kind` one kind."""
    rows = _one_model(_rows(frame, measure, heads=True))
    there = unique(map(str, rows["kind"]))
    if kind is not None and kind not in there:
        raise unknown_name("kind of attention in these rows", kind, there)
    own = rows[rows["kind"] == (kind or there[0])]
    return _drawn(maps_of(own, unique(map(str, own["measure"])), told or {}), ax, legend=False)


def clouds(
    points: pd.DataFrame, layer: int | None = None, head: int | None = None, *, step: int | None = None,
    on: str = "shared", kind: str | None = None, ax: Axes | None = None, legend: bool = True,
) -> Axes:  # fmt: skip
    """Draw queries and keys of one head, by default the one that drifts most, at a step, by default the last.

    `on` is the kind of axes: `shared`, `centred` or `random`.
    """
    if on not in pictures.AXES:
        raise unknown_name("kind of axes", on, pictures.AXES)
    moving = by_step(points)
    album = pictures.album(_in_units(moving if len(moving) else points))
    if album is None:
        raise IsoscopeError("there is nothing to draw: these points hold no queries and keys of heads.")
    at = album.picked(layer, head, kind, None if step is None else str(step))
    chart = pictures.framed_cloud(album.heads[at][list(pictures.AXES).index(on)])
    return draw(chart.named(f"layer {at[2]} head {at[3]}"), ax, legend=legend)


def eigenvalues(
    points: pd.DataFrame, layer: int | None = None, head: int | None = None, *, ax: Axes | None = None,
    legend: bool = True,
) -> Axes:  # fmt: skip
    """Draw the eigenvalues of W of one head, by default the first, among those of its layer's others."""
    return _of_weights(points, "spectrum", layer, head, ax, legend)


def propagation(
    points: pd.DataFrame, layer: int | None = None, head: int | None = None, *, measured: bool = False,
    ax: Axes | None = None, legend: bool = True,
) -> Axes:  # fmt: skip
    """Draw where the signal of one head passes, by its weights; `measured`: where its last query attends."""
    return _of_weights(points, "measured" if measured else "predicted", layer, head, ax, legend)


def _of_weights(
    points: pd.DataFrame, panel: str, layer: int | None, head: int | None, ax: Axes | None, legend: bool
) -> Axes:
    album = weights.heads(_in_units(points))
    if album is None or panel not in album.panels:
        raise IsoscopeError(
            f"there is nothing to draw: these points hold no {panel} of the weights of heads."
        )
    return draw(weights.picture(album, album.picked(layer, head), panel), ax, legend=legend)


def _in_units(points: pd.DataFrame) -> pd.DataFrame:
    """The points with their unit; those of an observation have none."""
    return points if "unit" in points else points.assign(unit="")


def _drawn(made: Sequence[Panel], ax: Axes | None, legend: bool) -> Axes:
    if not made:
        raise IsoscopeError("there is nothing to draw: these rows hold no value of what this figure shows.")
    return draw(made[0].chart.named(made[0].heading), ax, legend=legend)


def _checked(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows that can be drawn: without those of batches that trained, each of which is another batch."""
    if not isinstance(frame, pd.DataFrame) or not {"measure", "kind", "value", "head"} <= set(frame.columns):
        what = type(frame).__name__
        raise IsoscopeError(
            f"a figure is drawn from rows, as `.frame()` gives them; got {what} without them."
        )
    return probed(frame)


def _rows(
    frame: pd.DataFrame, measure: str | None, *, heads: bool, kinds: Sequence[str] = _PLACED
) -> pd.DataFrame:
    """The rows of one measure at such sites, or their heads: by default the most important with a value."""
    rows, what = _checked(frame), "heads" if heads else "sites"
    rows = rows[(rows["head"].notna() == heads) & rows["kind"].isin(list(kinds))]
    known = unique(map(str, rows["measure"]))
    there = unique(map(str, rows.loc[rows["value"].notna(), "measure"]))
    if measure is not None and known and measure not in known:
        raise unknown_name(f"measure of {what} in these rows", measure, known)
    if not there or measure not in (None, *there):
        notes = rows["note"] if measure is None else rows.loc[rows["measure"] == measure, "note"]
        why = listed(unique(filter(None, map(str, notes)))[:2] or ["no reason is given"])
        of = measure or "no measure"
        raise IsoscopeError(f"there is nothing to draw: {of} has no value at {what} in these rows ({why}).")
    prefer = [m for group in MAPS.values() for m in group] if heads else MAIN
    return rows[rows["measure"] == (measure or next((m for m in prefer if m in there), there[0]))]


def _one_model(rows: pd.DataFrame) -> pd.DataFrame:
    names = unique(map(str, rows["model"]))
    if len(names) < 2:
        return rows
    raise IsoscopeError(
        f"these rows are of {len(names)} models ({', '.join(names[:4])}); this figure is of one: give "
        "those of one, as frame[frame.model == name]."
    )
