"""What a person sees in the terminal: a table of sites, a progress bar, warnings.

The table goes to stdout, everything else to stderr. The bar keeps quiet when that is not a terminal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate, islice
from typing import TypeVar

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from isoscope.show.measures import BY_HEAD, COLUMNS, COLUMNS_WITH_ATTENTION, OVER_STEPS, heading_of, how_shown
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


def show(rows: pd.DataFrame) -> None:
    """Print one line a site; of several steps, one table a measure with a line a step.

    Of several models each is shown at its last step.
    """
    probed = rows.revision.fillna("") != "live"  # what a Monitor saw of batches that trained is on the page
    rows = rows[probed] if probed.any() else rows
    compared = rows[rows.kind == "comparison"]
    heads = rows[rows["head"].notna()]
    rows = rows[(rows.kind != "comparison") & rows["head"].isna()]
    if rows.model.nunique() > 1:
        rows = rows[rows.step.isna() | (rows.step == rows.groupby("model").step.transform("max"))]
        show_table(_over_sites(rows))
    elif rows.step.nunique() > 1:
        asked = [name for name in OVER_STEPS if (rows.measure == name).any()][:_MOST_TABLES]
        for name in asked or list(rows.measure.drop_duplicates())[:3]:
            show_table(_over_steps(rows, name))
    else:
        show_table(_over_sites(rows))
        _show_heads(heads)
    if len(compared):
        show_table(_comparison(compared))


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


def _over_sites(rows: pd.DataFrame) -> Table:
    names = list(rows.measure.drop_duplicates())
    attended = bool(rows.kind.isin(["attention", "cross_attention"]).any())
    there = [column for column in _columns(attended) if column[0] in names]
    if not there or len(names) <= _MOST:
        others = [name for name in names if name not in {column[0] for column in there}]
        there += [(name, heading_of(name), True, _OTHER) for name in others]
    several = rows.model.nunique() > 1
    site = 28 if (rows.kind == "cross_attention").any() else 20
    widths = accumulate((column[3] for column in there), initial=site + several * (_NAME + 3))
    present = [
        column
        for column, width in zip(there, islice(widths, 1, None), strict=False)
        if width <= screen_width()
    ]
    fewer = "; a wider terminal shows more" if len(present) < len(there) else ""
    fewer += f"; the page shows all {len(names)} measures" if len(there) < len(names) else ""
    table = Table(
        caption=f"value [95 % interval] (value of an isotropic cloud){fewer}", caption_justify="left"
    )
    for head in ("model", "site") if several else ("site",):
        table.add_column(head, no_wrap=True)
    for head in ("n", *(head for _, head, _, _ in present)):
        table.add_column(head, justify="right", no_wrap=True)
    rows = rows[rows.measure.isin([column[0] for column in present])]
    last = ""
    for (model, kind, layer), part in _joined(rows).groupby(
        ["model", "line", "layer"], dropna=False, sort=False
    ):
        cells = part.set_index("measure")
        values = [
            _cell(cells, name, interval) if name in cells.index else "" for name, _, interval, _ in present
        ]
        if several and last not in ("", model):
            table.add_section()
        name = ["" if model == last else _short(str(model))] if several else []
        counted = cells[cells.kind == kind]  # of a layer its vectors, not the rows of its attention
        table.add_row(*name, _site(kind, layer), str((cells if counted.empty else counted).n.max()), *values)
        last = str(model)
    return table


def _joined(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the kind of the line they stand on: the attention of block i is on that of layer i."""
    beside = {"attention": "layer"} if (rows.kind == "layer").any() else {}
    return rows.assign(line=rows.kind.replace(beside))


def _show_heads(rows: pd.DataFrame) -> None:
    """One small table of the heads of one model, or a word that the page has them."""
    found = [name for name in BY_HEAD if (rows.measure == name).any()]
    if not found:
        return
    mine = rows[(rows.measure == found[0]) & (rows.kind == "attention")]
    layers, heads = mine.layer.nunique(), mine["head"].nunique()
    if layers > _MOST_LAYERS or 15 + heads * _HEAD > screen_width():
        say("The page has maps of the heads.")
        return
    title = f"{found[0].replace('_', ' ')} by head"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False)
    table.add_column("site", no_wrap=True)
    for head in sorted(mine["head"].unique()):
        table.add_column(str(head), justify="right", no_wrap=True)
    for layer, part in mine.groupby("layer"):
        values = part.sort_values("head").value
        table.add_row(_site("attention", layer), *("–" if math.isnan(v) else f"{v:.2f}" for v in values))
    show_table(table)


def _comparison(rows: pd.DataFrame) -> Table:
    title = (
        "does the mean cosine follow the drift from layer to layer? (p nominal: layers are not independent)"
    )
    table = Table(title=title, title_justify="left")
    names = list(rows.measure.drop_duplicates())
    between = " " if screen_width() >= _NARROW else "\n"
    for head in ("model", "layers", *(name.replace("_", "\n", 1).replace("_", " ") for name in names)):
        table.add_column(head, justify="left" if head == "model" else "right")
    for model, part in rows.groupby("model", sort=False):
        cells = part.set_index("measure")
        tested = [f"p = {p:.2g}" if p == p else note for p, note in zip(cells.p, cells.note, strict=True)]
        tests = dict(zip(cells.index, tested, strict=True))
        told = [f"{number(float(cells.value[name]))}{between}({tests[name]})" for name in names]
        table.add_row(_short(str(model)), str(cells.n.max()), *told)
    return table


def _over_steps(rows: pd.DataFrame, measure: str) -> Table:
    loss = rows[rows.measure == "loss"].set_index("step").value
    mine = rows[rows.measure == measure]
    mine = mine.assign(site=[_site(kind, layer) for kind, layer in mine[["kind", "layer"]].to_numpy()])
    sites = list(mine.site.drop_duplicates())
    shown = _spaced(sites, (screen_width() - 20) // (3 + max(map(len, sites))))
    steps = _spaced([int(step) for step in mine.step.drop_duplicates().sort_values()], _MOST_STEPS)
    few = [f"{len(shown)} of {len(sites)} sites"] if len(shown) < len(sites) else []
    few += [f"{len(steps)} of {mine.step.nunique()} steps"] if len(steps) < mine.step.nunique() else []
    table = Table(
        title=measure.replace("_", " "),
        title_justify="left",
        caption=f"{', '.join(few)}; the page shows {'more' if len(steps) < mine.step.nunique() else 'all'}"
        if few
        else None,
        caption_justify="left",
    )
    for head in ("step", *(["loss"] if len(loss) else []), *shown):
        table.add_column(head, justify="right")
    for step, part in mine[mine.step.isin(steps)].groupby("step"):
        lost = [number(float(loss[step])) if step in loss.index else ""] if len(loss) else []
        value = part.set_index("site").value
        table.add_row(
            str(step), *lost, *(number(float(value[site])) if site in value else "" for site in shown)
        )
    return table


def _spaced(names: list[Item], most: int) -> list[Item]:
    """At most so many of them, evenly spaced, the first and the last among them.

    >>> _spaced(list("abcdefg"), 4)
    ['a', 'c', 'e', 'g']
    """
    count = max(2, min(most, len(names)))
    return (
        names if count >= len(names) else [names[i * (len(names) - 1) // (count - 1)] for i in range(count)]
    )


def _short(name: str) -> str:
    """The end of a long name, which tells most."""
    return name if len(name) <= _NAME else f"…{name[1 - _NAME :]}"


def show_table(table: Table) -> None:
    """Print a table to stdout; where that is not a terminal it may be 140 columns wide."""
    Console(width=screen_width()).print(table)


def screen_width() -> int:
    """Columns of the terminal; 140 where the output is not a terminal."""
    console = Console()
    return console.width if console.is_terminal else 140


def _site(kind: object, layer: object) -> str:
    return str(kind) if layer is pd.NA else str(Site(str(kind), int(str(layer))))


def _cell(cells: pd.DataFrame, measure: str, interval: bool) -> str:
    value, null, low, high = map(float, cells.loc[measure, ["value", "null", "low", "high"]].to_numpy())
    if math.isnan(value):
        return "–"
    column = how_shown(measure).column
    if column and not column.bare and how_shown(measure).null == "chance" and not math.isnan(null):
        return f"{number(value)} (chance {number(null)})"
    if column and column.bare and not interval:
        return number(value)
    if interval and not math.isnan(low):
        return f"{number(value)} [{number(low)}, {number(high)}]"
    return number(value) if math.isnan(null) or null == 0 else f"{number(value)} ({number(null)})"


def number(value: float) -> str:
    """Three digits that matter.

    >>> number(0.12345), number(1234.5), number(0.0), number(2e-9)
    ('0.123', '1234', '0.000', '2.0e-09')
    """
    size = abs(value)
    if size >= 1e6:
        return f"{value:.2e}"
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.3f}" if size >= 0.0005 or size == 0 else f"{value:.1e}"


def show_json(rows: pd.DataFrame, **beside: object) -> None:
    """Print rows and what goes with them as one JSON object; NaN is null."""
    records = json.loads(rows.to_json(orient="records", double_precision=15))
    print(json.dumps({**beside, "rows": records}, indent=1))  # noqa: T201


def warn(notes: Iterable[str]) -> None:
    """Print remarks, one a line, to stderr."""
    console = Console(stderr=True)
    for note in notes:
        console.print(f"note: {note}", style="yellow", markup=False, highlight=False)


def say(text: str) -> None:
    """Print a line to stdout, as it is."""
    Console().print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """A progress bar on stderr; gives the function that moves it."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
