"""Tables of sites for the terminal: short whatever was measured, and at most as wide as the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import pandas as pd

from isoscope.formatting import ABSENT, number, shortened
from isoscope.kinds.screen import Table, headed
from isoscope.results.reading import Reading
from isoscope.show import measures
from isoscope.show.figures.step_axis import spaced
from isoscope.show.readings import QUERY_KEY
from isoscope.show.say.words import LIVE
from isoscope.sites import Site, parts

_MOST_LAYERS = 12  # a table of heads with more layers is no small one
_HEAD = 7  # columns a head takes
_KINDS = {"position": "pos", "key": "key", "query position": "query", "content": "cont", "mixed": "mix"}
_MOST = 8  # measures that were picked by hand and are all shown, as far as the terminal is wide
_NAME = 28  # columns a model's name may take
_NARROW = 120  # columns under which a correlation and its p stand on two lines
_MOST_TABLES = 4
_MOST_STEPS = 24  # lines of a table
_REGIMES = 26  # columns the least that regimes are told in
_SIDES = {"input_vocabulary": "input", "output_vocabulary": "output", "tied_vocabulary": "tied"}
_STANDS: dict[str, Callable[[str], bool]] = {  # which kinds of site stand in a table of weights, by its title
    "queries and keys, the mean over heads": lambda kind: kind in QUERY_KEY,
    "the same on data": lambda kind: kind in QUERY_KEY,
    "vocabulary": lambda kind: parts(kind)[0] in _SIDES,
    "final norm": lambda kind: kind == "norm",
    "stages of the final norm": lambda kind: kind != "norm" and parts(kind)[0] == "norm",
}
_OF_WEIGHTS = (
    "value (null: random W of the same size, of ρ(t) the other heads' predictions; rows that point anywhere; "
    "a norm before training)"
)


def all_tables(rows: pd.DataFrame, width: int) -> list[Table | str]:
    """The tables of weights, then those of other sites."""
    kinds = rows.kind.astype(str)
    weighs = kinds.map(lambda kind: any(stands(kind) for stands in _STANDS.values())).astype(bool)
    rest = rows[~weighs]
    return [*_of_weights(rows[weighs], width), *(tables(rest, width) if len(rest) else ())]


def tables(rows: pd.DataFrame, width: int) -> list[Table | str]:
    """One line per site; of several steps, a table per measure; of several models, each at its last step."""
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
        asked = [name for name in measures.OVER_STEPS if (rows.measure == name).any()][:_MOST_TABLES]
        for name in asked or list(rows.measure.drop_duplicates())[:3]:
            made.append(_over_steps(rows, name, width))
    else:
        made += [_over_sites(rows, width), *_of_heads(heads, width)]
    return [*made, _comparison(compared, width)] if len(compared) else made


def _of_weights(rows: pd.DataFrame, width: int) -> list[Table | str]:
    """The tables of weights, of several steps those of the last."""
    if rows.empty:
        return []
    whole = rows[(rows.step.isna() | (rows.step == rows.step.max())) & rows["head"].isna()]
    made: list[Table | str] = []
    for title, wanted in measures.COLUMNS_OF_WEIGHTS.items():
        mine = whole[whole.kind.map(_STANDS[title]).astype(bool)]
        if names := [name for name in wanted if (mine.measure == name).any()]:
            made.append(_sites(mine, names, width, title, intervals=0))
    several = rows.step.nunique() > 1
    more = f"; of step {rows.step.max()}, the page has all steps" if several else ""
    return [*made, _OF_WEIGHTS + more]


def _over_sites(rows: pd.DataFrame, width: int) -> Table:
    """A table of the main measures; where there is attention, only the first has its interval."""
    there = list(rows.measure.drop_duplicates())
    attended = bool(rows.kind.isin(["attention", "cross_attention"]).any())
    wanted = measures.COLUMNS_WITH_ATTENTION if attended else measures.COLUMNS
    names = [name for name in wanted if name in there and measures.how_shown(name).instead not in there]
    if not names or len(there) <= _MOST:
        names += [name for name in there if name not in names]
    caption = "value [95 % interval] (value of an isotropic cloud)"
    more = f"; the page shows all {len(there)} measures" if len(names) < len(there) else ""
    return _sites(rows, names, width, intervals=1 if attended else len(names), caption=(caption, more))


def _sites(
    rows: pd.DataFrame, names: Sequence[str], width: int, title: str = "", *, intervals: int = 0,
    caption: tuple[str, str] = ("", ""),
) -> Table:  # fmt: skip
    """One line per site and as many of these measures as fit, the first `intervals` with their interval.

    Where measures are left out, the caption says so between its two parts.
    """
    several, regimes = rows.model.nunique() > 1, names[0] in ("trace", "trace_on_data")
    beside = {"attention": "layer"} if (rows.kind == "layer").any() else {}  # of block i with layer i
    mine = rows[rows.measure.isin(names)].assign(line=rows.kind.replace(beside))
    lines: list[tuple[str, ...]] = []
    rules = set()
    for model, of_model in mine.groupby("model", sort=False):
        rules.add(len(lines))
        named = [shortened(str(model), _NAME)] if several else []
        for (kind, layer), part in of_model.groupby(["line", "layer"], dropna=False, sort=False):
            cells = {row.measure: row for row in part.itertuples()}
            values = [_cell(cells.get(name), at < intervals) for at, name in enumerate(names)]
            first = next(cells[name] for name in names if name in cells)
            lines.append(
                (*named, _site(kind, layer), str(first.n), *values, str(first.tag).replace("_", " "))
            )
            named = [""] if several else []
    left = ("model", "site") if several else ("site",)
    counted = "heads" if names[0] == "trace" else "n"
    columns = headed(left, (counted, *map(measures.heading_of, names)))
    widths = [
        3 + max(len(word) for text in (column.heading, *cells) for word in text.split("\n"))
        for column, cells in zip(columns, zip(*lines, strict=True), strict=False)
    ]
    taken = accumulate(widths, initial=1 + regimes * (3 + _REGIMES))
    fitting = max(sum(end <= width for end in taken) - 1, len(left) + 2)
    fewer = "; a wider terminal shows more" if fitting < len(columns) else ""
    shown = [line[:fitting] + (line[-1:] if regimes else ()) for line in lines]
    last = headed(("regimes",), folds=True) if regimes else ()
    said = fewer.join(caption) if caption[0] else ""
    return Table((*columns[:fitting], *last), tuple(shown), title, said, frozenset(rules - {0}))


def _of_heads(rows: pd.DataFrame, width: int) -> list[Table | str]:
    """One small table of the heads of one model, or a word that the page has them."""
    found = [name for name in measures.BY_HEAD if (rows.measure == name).any()]
    if not found:
        return []
    mine = rows[(rows.measure == found[0]) & (rows.kind == "attention")]
    layers, heads = mine.layer.nunique(), sorted(mine["head"].unique())
    if layers > _MOST_LAYERS or 15 + len(heads) * _HEAD > width:
        return ["The page has maps of the heads."]
    lines = []
    for layer, part in mine.groupby("layer"):
        known = zip(part.sort_values("head").value, part.sort_values("head").tag, strict=True)
        cells = (ABSENT if math.isnan(value) else _KINDS.get(tag, f"{value:.2f}") for value, tag in known)
        lines.append((_site("attention", layer), *cells))
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
        lines.append((shortened(str(model), _NAME), str(cells.n.max()), *told))
    heads = ("layers", *(name.replace("_", "\n", 1).replace("_", " ") for name in names))
    asks = "does the mean cosine follow the drift from layer to layer?"
    title = f"{asks} (p nominal: layers are not independent)"
    return Table(headed(("model",), heads, folds=True), tuple(lines), title)


def _over_steps(rows: pd.DataFrame, measure: str, width: int) -> Table:
    """A line per step with the loss, where it is known, and the measure at each site."""
    own = rows[rows.measure == measure]
    values = {
        (int(step), _site(kind, layer)): float(value)
        for step, kind, layer, value in zip(own.step, own.kind, own.layer, own.value, strict=True)
    }
    every, all_steps = list(dict.fromkeys(site for _, site in values)), sorted({step for step, _ in values})
    sites = spaced(every, max(2, (width - 20) // (3 + max(map(len, every)))))
    steps = spaced(all_steps, _MOST_STEPS)
    loss = rows[rows.measure == "loss"]
    values |= {(int(step), "loss"): float(value) for step, value in zip(loss.step, loss.value, strict=True)}
    columns = [*(["loss"] if len(loss) else []), *sites]
    lines = [
        (str(step), *(number(values[step, name]) if (step, name) in values else "" for name in columns))
        for step in steps
    ]
    counts = ((len(sites), len(every), "sites"), (len(steps), len(all_steps), "steps"))
    few = [f"{some} of {all_} {what}" for some, all_, what in counts if some < all_]
    caption = f"{', '.join(few)}; the page shows more" if few else ""
    return Table(headed((), ("step", *columns), folds=True), tuple(lines), measure.replace("_", " "), caption)


def _site(kind: object, layer: Any) -> str:
    """A site; without a layer, the form of a vocabulary or the stage of the norm in words.

    >>> _site("layer", 3), _site("input_vocabulary_without_top", pd.NA), _site("norm_before", pd.NA)
    ('layer.3', 'input, without top', 'before')
    """
    if not pd.isna(layer):
        return str(Site(str(kind), int(str(layer))))
    base, form = parts(str(kind))
    side = _SIDES.get(base, base)
    return (form or side if base == "norm" else ", ".join(filter(None, [side, form]))).replace("_", " ")


def _cell(row: Any, interval: bool) -> str:
    """A row's value as its measure is shown, with its interval where that is asked for; empty for None."""
    if row is None:
        return ""
    how = measures.how_shown(row.measure)
    if how.count and not math.isnan(row.value):
        return f"{row.value:.0f}"
    if abs(row.value) < how.least:
        return "0"
    if how.heading and not how.bare and how.null == "chance" and not math.isnan(row.value + row.null):
        return f"{number(row.value)} (chance {number(row.null)})"
    if math.isnan(row.value):
        return ABSENT
    if interval and how.interval and Reading.of(row._asdict()).bounded:
        return f"{number(row.value)} [{number(row.low)}, {number(row.high)}]"
    bare = how.bare or math.isnan(row.null) or row.null == 0
    return number(row.value) if bare else f"{number(row.value)} ({number(row.null)})"
