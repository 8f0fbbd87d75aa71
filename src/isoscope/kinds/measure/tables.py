"""Tables of sites for the terminal: short whatever was measured, and at most as wide as the terminal."""

from __future__ import annotations

import math
from itertools import accumulate, islice
from typing import TypeVar

import pandas as pd

from isoscope.formatting import ABSENT, number
from isoscope.kinds.screen import Table, headed
from isoscope.show.measures import BY_HEAD, COLUMNS, COLUMNS_WITH_ATTENTION, OVER_STEPS, heading_of, how_shown
from isoscope.show.say.words import LIVE
from isoscope.sites import Site

_MOST_LAYERS = 12  # a table of heads with more layers is no small one
_HEAD = 7  # columns a head takes
_MOST = 8  # measures that were picked by hand and are all shown, as far as the terminal is wide
_OTHER = 24  # columns a measure takes that has no column of its own
_NAME = 28  # columns a model's name may take
_NARROW = 120  # columns under which a correlation and its p stand on two lines
_MOST_TABLES = 4
_MOST_STEPS = 24  # lines of a table

Item = TypeVar("Item")


def tables(rows: pd.DataFrame, width: int) -> list[Table | str]:
    """One line per site; of several steps, one table per measure with a line per step.

    Of several models each is shown at its last step.
    """
    probed = rows.revision.fillna("") != LIVE  # what a Monitor saw of batches that trained is on the page
    rows = rows[probed] if probed.any() else rows
    compared = rows[rows.kind == "comparison"]
    heads = rows[rows["head"].notna()]
    rows = rows[(rows.kind != "comparison") & rows["head"].isna()]
    made: list[Table | str] = []
    if rows.model.nunique() > 1:
        rows = rows[rows.step.isna() | (rows.step == rows.groupby("model").step.transform("max"))]
        made.append(_over_sites(rows, width))
    elif rows.step.nunique() > 1:
        asked = [name for name in OVER_STEPS if (rows.measure == name).any()][:_MOST_TABLES]
        for name in asked or list(rows.measure.drop_duplicates())[:3]:
            made.append(_over_steps(rows, name, width))
    else:
        made += [_over_sites(rows, width), *_of_heads(heads, width)]
    return [*made, _comparison(compared, width)] if len(compared) else made


def _columns(attended: bool) -> list[tuple[str, str, bool, int]]:
    """The columns of sites: measure, heading, whether its interval is shown, width; the first matter most.

    Where there is attention only the first has its interval: five of them, site and n take 98 columns.
    """
    made: list[tuple[str, str, bool, int]] = []
    for name in COLUMNS_WITH_ATTENTION if attended else COLUMNS:
        if column := how_shown(name).column:
            wide = column.wide if not (attended and made) else 0
            made.append((name, column.heading, wide > 0, wide or column.width))
    return made


def _over_sites(rows: pd.DataFrame, width: int) -> Table:
    names = list(rows.measure.drop_duplicates())
    attended = bool(rows.kind.isin(["attention", "cross_attention"]).any())
    there = [shown for shown in _columns(attended) if shown[0] in names]
    if not there or len(names) <= _MOST:
        others = [name for name in names if name not in {shown[0] for shown in there}]
        there += [(name, heading_of(name), True, _OTHER) for name in others]
    several = rows.model.nunique() > 1
    site = 28 if (rows.kind == "cross_attention").any() else 20
    widths = accumulate((shown[3] for shown in there), initial=site + several * (_NAME + 3))
    present = [shown for shown, taken in zip(there, islice(widths, 1, None), strict=False) if taken <= width]
    fewer = "; a wider terminal shows more" if len(present) < len(there) else ""
    fewer += f"; the page shows all {len(names)} measures" if len(there) < len(names) else ""
    rows = rows[rows.measure.isin([shown[0] for shown in present])]
    lines: list[tuple[str, ...]] = []
    rules, last = set(), ""
    for (model, kind, layer), part in _joined(rows).groupby(
        ["model", "line", "layer"], dropna=False, sort=False
    ):
        cells = part.set_index("measure")
        values = [
            _cell(cells, name, interval) if name in cells.index else "" for name, _, interval, _ in present
        ]
        if several and last not in ("", model):
            rules.add(len(lines))
        name = ["" if model == last else _short(str(model))] if several else []
        counted = cells[cells.kind == kind]  # of a layer its vectors, not the rows of its attention
        n = str((cells if counted.empty else counted).n.max())
        lines.append((*name, _site(kind, layer), n, *values))
        last = str(model)
    return Table(
        headed(("model", "site") if several else ("site",), ("n", *(head for _, head, _, _ in present))),
        tuple(lines),
        caption=f"value [95 % interval] (value of an isotropic cloud){fewer}",
        rules=frozenset(rules),
    )


def _joined(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the kind of the line they stand on: the attention of block i is on that of layer i."""
    beside = {"attention": "layer"} if (rows.kind == "layer").any() else {}
    return rows.assign(line=rows.kind.replace(beside))


def _of_heads(rows: pd.DataFrame, width: int) -> list[Table | str]:
    """One small table of the heads of one model, or a word that the page has them."""
    found = [name for name in BY_HEAD if (rows.measure == name).any()]
    if not found:
        return []
    mine = rows[(rows.measure == found[0]) & (rows.kind == "attention")]
    layers, heads = mine.layer.nunique(), sorted(mine["head"].unique())
    if layers > _MOST_LAYERS or 15 + len(heads) * _HEAD > width:
        return ["The page has maps of the heads."]
    lines = [
        (
            _site("attention", layer),
            *(ABSENT if math.isnan(v) else f"{v:.2f}" for v in part.sort_values("head").value),
        )
        for layer, part in mine.groupby("layer")
    ]
    title = f"{found[0].replace('_', ' ')} by head"
    return [Table(headed(("site",), map(str, heads)), tuple(lines), title, boxed=False)]


def _comparison(rows: pd.DataFrame, width: int) -> Table:
    names = list(rows.measure.drop_duplicates())
    between = " " if width >= _NARROW else "\n"
    lines = []
    for model, part in rows.groupby("model", sort=False):
        cells = part.set_index("measure")
        tested = [f"p = {p:.2g}" if p == p else note for p, note in zip(cells.p, cells.note, strict=True)]
        tests = dict(zip(cells.index, tested, strict=True))
        told = [f"{number(float(cells.value[name]))}{between}({tests[name]})" for name in names]
        lines.append((_short(str(model)), str(cells.n.max()), *told))
    heads = ("layers", *(name.replace("_", "\n", 1).replace("_", " ") for name in names))
    title = (
        "does the mean cosine follow the drift from layer to layer? (p nominal: layers are not independent)"
    )
    return Table(headed(("model",), heads, folds=True), tuple(lines), title)


def _over_steps(rows: pd.DataFrame, measure: str, width: int) -> Table:
    loss = rows[rows.measure == "loss"].set_index("step").value
    mine = rows[rows.measure == measure]
    mine = mine.assign(site=[_site(kind, layer) for kind, layer in mine[["kind", "layer"]].to_numpy()])
    sites = list(mine.site.drop_duplicates())
    shown = _spaced(sites, (width - 20) // (3 + max(map(len, sites))))
    steps = _spaced([int(step) for step in mine.step.drop_duplicates().sort_values()], _MOST_STEPS)
    few = [f"{len(shown)} of {len(sites)} sites"] if len(shown) < len(sites) else []
    few += [f"{len(steps)} of {mine.step.nunique()} steps"] if len(steps) < mine.step.nunique() else []
    all_ = "more" if len(steps) < mine.step.nunique() else "all"
    lines = []
    for step, part in mine[mine.step.isin(steps)].groupby("step"):
        lost = [number(float(loss[step])) if step in loss.index else ""] if len(loss) else []
        value = part.set_index("site").value
        cells = (number(float(value[site])) if site in value else "" for site in shown)
        lines.append((str(step), *lost, *cells))
    return Table(
        headed((), ("step", *(["loss"] if len(loss) else []), *shown), folds=True),
        tuple(lines),
        measure.replace("_", " "),
        f"{', '.join(few)}; the page shows {all_}" if few else "",
    )


def _spaced(names: list[Item], most: int) -> list[Item]:
    """At most `most` names, evenly spaced, the first and the last among them.

    >>> _spaced(list("abcdefg"), 4)
    ['a', 'c', 'e', 'g']
    """
    count = max(2, min(most, len(names)))
    return (
        names if count >= len(names) else [names[i * (len(names) - 1) // (count - 1)] for i in range(count)]
    )


def _short(name: str) -> str:
    """The end of a long name, which says most."""
    return name if len(name) <= _NAME else f"…{name[1 - _NAME :]}"


def _site(kind: object, layer: object) -> str:
    return str(kind) if layer is pd.NA else str(Site(str(kind), int(str(layer))))


def _cell(cells: pd.DataFrame, measure: str, interval: bool) -> str:
    value, null, low, high = map(float, cells.loc[measure, ["value", "null", "low", "high"]].to_numpy())
    how = how_shown(measure)
    bare = how.column is not None and how.column.bare
    if how.column and not bare and how.null == "chance" and not math.isnan(value + null):
        return f"{number(value)} (chance {number(null)})"
    return bounded(
        value, *((math.nan,) * 3 if bare and not interval else (null, low, high)), interval=interval
    )


def bounded(value: float, null: float, low: float, high: float, *, interval: bool = True) -> str:
    """A value with its interval or, without one, with its null where that is not 0."""
    if math.isnan(value):
        return ABSENT
    if interval and not math.isnan(low):
        return f"{number(value)} [{number(low)}, {number(high)}]"
    return number(value) if math.isnan(null) or null == 0 else f"{number(value)} ({number(null)})"
