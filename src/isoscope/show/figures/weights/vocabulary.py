"""The vocabulary on the page: a table of its matrices beside the hidden states, and their SVD scatters.

Raw and centred of one matrix have one scale; rows that lie far outside are cut off and counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import accumulate, product

import pandas as pd

from isoscope.formatting import short
from isoscope.show.charts import Axis, Chart, Hover, Series, rounded
from isoscope.show.colours import MODELS
from isoscope.show.figures.clouds import ORIGIN
from isoscope.show.figures.panels import Panel
from isoscope.show.measures import FAMILIES, Told, how_shown, title_of
from isoscope.show.readings import SiteReading, at_last, models, read
from isoscope.sites import CENTRED, WITHOUT_TOP, of_form, parts

FORMS = {"": "as it is", CENTRED: "centred", WITHOUT_TOP: "without its top directions"}
SIDES = {"input_vocabulary": "Input vocabulary", "output_vocabulary": "Output vocabulary"}
VOCABULARY = tuple(of_form(side, form) for side in SIDES for form in FORMS)
"""The kinds of site that are a vocabulary matrix, in one of its forms."""

HIDDEN = ("norm_output", "output", "layer")
"""Where hidden states leave the model: the first of these that is there stands beside the vocabulary."""

MEASURES = (*FAMILIES["vocabulary"].others, *FAMILIES["vocabulary"].measures)
"""The lines of the table; other measures of these sites are in the table of rows."""

HEIGHT = 340
_DOT = Hover("", "{x:.3g}, {y:.3g}")
CUT = 0.995  # the share of the rows that a scatter shows at least: the scale is theirs


@dataclass(frozen=True)
class Entry:
    """A value of the table, its null, and all of it in words."""

    value: str
    null: str
    words: str


@dataclass(frozen=True)
class Grid:
    """A table: its heading, groups of columns with how many they span, the columns, and lines of entries."""

    heading: str
    groups: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]
    lines: tuple[tuple[str, tuple[Entry | None, ...]], ...]

    @property
    def starts(self) -> tuple[int, ...]:
        """The columns that groups begin with."""
        return tuple(accumulate((span for _, span in self.groups[:-1]), initial=0))


def tables(rows: pd.DataFrame, told: Told) -> tuple[Grid, ...]:
    """One table per model, at its last step: a line per measure, a column per matrix that is there."""
    readings = [r for r in read(rows[rows["head"].isna()]) if r.known]
    names = models(r for r in readings if r.kind in VOCABULARY)
    own = {name: at_last([r for r in readings if r.model == name]) for name in names}
    return tuple(_table(own[name], name if len(names) > 1 else "", told) for name in names)


def _table(own: list[SiteReading], heading: str, told: Told) -> Grid:
    columns = [kind for kind in VOCABULARY if any(r.kind == kind for r in own)]
    labels = [FORMS[parts(kind)[1]] for kind in columns]
    spans = [(name, sum(parts(kind)[0] == side for kind in columns)) for side, name in SIDES.items()]
    at = {(r.measure, r.kind): r for r in own if r.kind in columns}
    there = {measure for measure, _ in at} - {"mean_cosine_between"}  # of rows it is the other again
    # the vectors that leave the model: at the norm, the output, or the deepest layer
    kind = next((kind for kind in HIDDEN if any(r.kind == kind for r in own)), "")
    deepest = max((r.layer for r in own if r.kind == kind and r.layer is not None), default=None)
    hidden = [r for r in own if r.kind == kind and r.layer == deepest]
    if hidden:
        columns, labels = [*columns, "hidden"], [*labels, hidden[0].site.replace("norm-output", "final norm")]
        spans = [*spans, ("Hidden states", 1)]
        at |= {(r.measure, "hidden"): r for r in hidden}
        there |= {r.measure for r in hidden} & {"mean_cosine_between"}
    lines = [
        (title_of(measure, told), tuple(_entry(at.get((measure, kind))) for kind in columns))
        for measure in MEASURES
        if measure in there
    ]
    return Grid(heading, tuple(span for span in spans if span[1]), tuple(labels), tuple(lines))


def _entry(reading: SiteReading | None) -> Entry | None:
    if reading is None:
        return None
    null = short(reading.null) if math.isfinite(reading.null) else ""
    words = [
        reading.site, f"{reading.value:.6g}", f"95 % interval {reading.interval}" if reading.bounded else "",
        f"null {reading.null:.6g}" if null else "", f"n {reading.n:,}" if reading.n else "", reading.note,
    ]  # fmt: skip
    centred = reading.kind in VOCABULARY and reading.kind not in SIDES
    removed = centred and abs(reading.value) < how_shown(reading.measure).least
    return Entry(short(0.0 if removed else reading.value), null, ", ".join(filter(None, words)))


def scatters(points: pd.DataFrame | None) -> tuple[Panel, ...]:
    """The rows of each matrix on its first two singular directions: raw and centred, side by side."""
    if points is None:
        return ()
    own = points[(points["picture"] == "svd") & points["kind"].isin(list(SIDES))]
    own = own[(own[["x", "y"]].abs() < math.inf).all(axis=1) & (own["unit"] == own["unit"].iloc[-1:].max())]
    drawn = []
    for (kind, label), (series, how) in product(SIDES.items(), (("raw", "as it is"), ("centred", "centred"))):
        far = own.loc[own["kind"] == kind, ["x", "y"]].abs().max(axis=1)
        most = 1.08 * float(far.quantile(CUT)) or 1.0
        mine = own[(own["kind"] == kind) & (own["series"] == series)]
        if len(mine):
            outside = int((mine[["x", "y"]].abs() > most).any(axis=1).sum())
            remark = f"{len(mine):,} rows" + (f", {outside} of them outside" if outside else "")
            x, y = ([rounded(value, 3) for value in mine[axis]] for axis in ("x", "y"))
            dots = Series("rows", x, y, style="dots", size=4, opacity=0.45, colour=MODELS[0], pattern=_DOT)
            across = Axis("first direction", (-most, most), zero=True, most=5)
            up = replace(across, name="second direction", grid=False)
            chart = Chart("", across, up, [dots, ORIGIN], equal=True, height=HEIGHT)
            drawn.append(Panel((), f"{label}, {how}", remark, chart))
    return tuple(drawn)
