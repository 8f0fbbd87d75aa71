"""What a contrast shows: a table of arms × quantities, the words, the page and the figure for print."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from rich.table import Table
from rich.text import Text

from isoscope.cli.pages import write_page
from isoscope.cli.screen import terminal as screen
from isoscope.errors import IsoscopeError
from isoscope.formatting import short
from isoscope.kinds.contrast.sentences import as_they_came, finding
from isoscope.lab.contrast.fit import Fitted, fit
from isoscope.results import store
from isoscope.results.store import RunFolder
from isoscope.show.measures import title_of

_MOST = 6  # quantities in the table; the page has all
_INTERVAL = 17  # columns of "[−0.058, −0.0094]"


def finish_contrast(folder: RunFolder, *, json: bool = False) -> None:
    """Fit what is in the folder, print it, and write page and figure where their libraries are there."""
    rows = folder.frame()
    if rows.empty:
        raise IsoscopeError(f"{folder.path} holds no trial yet; `isoscope contrast` makes them.")
    known = folder.facts()
    found = fitted(folder, rows)
    notes = list(dict.fromkeys(_notes(known)))
    with screen.bar("writing the page"):
        page = write_page(folder)
        drawn = _write_figure(folder, found)
    screen.warn(notes)
    beside = {"run": folder.run.id, "folder": str(folder.path), "page": page, "figures": drawn}
    if json:
        screen.show_json(rows, notes=notes, differences=_plain(found.differences), **beside)
        return
    if len(found.differences):
        screen.show_table(_table(found, folder))
    screen.say(finding(found.differences, found.arms, folder.run.measures))
    for name, where in (("page", [page]), ("figure", drawn)):
        if any(where):
            screen.say(f"{name}: {', '.join(where)}")


def fitted(folder: RunFolder, rows: pd.DataFrame) -> Fitted:
    """What the arms of a folder come to, against its reference."""
    return fit(rows, str(folder.run.question["reference"]), _arms(folder.facts()))


def _table(found: Fitted, folder: RunFolder) -> Table:
    """A line an arm, a column a quantity: the difference from the reference, mean over layers."""
    whole = found.differences[found.differences["layer"] == 0]
    at = whole["at"].dropna()
    where = f" at an entropy of {short(at.iloc[0], 2)}" if len(at) and at.max() - at.min() < 0.02 else ""
    seeds = int(whole["n"].max())
    kind = "95 % interval; * it excludes 0" if whole["low"].notna().any() else "least, most of the seeds"
    caption = f"difference from {found.arms[0]}{where}, mean over layers [{kind}], {seeds} seeds"
    table = Table(caption=Text(caption), caption_justify="left")  # its brackets are no markup
    table.add_column("arm", no_wrap=True)
    measures = [str(m) for m in whole["measure"].drop_duplicates()][:_MOST]
    for measure in measures:
        table.add_column(Text(title_of(measure, folder.run.measures)), justify="right", min_width=_INTERVAL)
    if as_they_came(found.differences):
        own = found.points[(found.points["layer"] == 0) & (found.points["arm"] == found.arms[0])]
        means = own.groupby("measure")["value"].mean()
        table.add_row(Text(f"{found.arms[0]}: its own"), *(_mean(means.get(name)) for name in measures))
    for arm in found.arms[1:]:
        cells = {line["measure"]: _cell(line) for _, line in whole[whole["arm"] == arm].iterrows()}
        table.add_row(Text(arm), *(cells.get(measure, "") for measure in measures))
    return table


def _mean(value: float | None) -> str:
    return "–" if value is None or pd.isna(value) else short(value)


def _cell(line: pd.Series) -> str:
    """Value and interval, marked where that excludes 0; the spread of the seeds where there is none."""
    if pd.isna(line["value"]):
        return "–"
    bounded = pd.notna(line["low"])
    low, high = (line["low"], line["high"]) if bounded else (line["least"], line["most"])
    mark = "*" if bounded and not low <= 0 <= high else ""
    return f"{short(line['value'], 2)}{mark}\n\\[{short(low, 2)}, {short(high, 2)}]"


def _arms(facts: Mapping[str, Mapping[str, object]]) -> list[str]:
    """The arms in the order in which they were asked for."""
    places = {(int(str(known["place"])), str(known["arm"])) for known in facts.values() if "place" in known}
    return [arm for _, arm in sorted(places)]


def _notes(facts: Mapping[str, Mapping[str, object]]) -> list[str]:
    told = [note for known in facts.values() for note in known.get("notes", [])]  # type: ignore[attr-defined]
    return [str(note) for note in told]


def _plain(table: pd.DataFrame) -> list[dict[str, object]]:
    """Lines of a table as JSON has them: what is no number is null."""
    return [
        {str(name): None if pd.isna(value) else value for name, value in line.items()}
        for line in table.to_dict("records")
    ]


def _write_figure(folder: RunFolder, found: Fitted) -> list[str]:
    from isoscope.kinds.contrast.figures import printed_contrast

    fitted = (found.points, found.lines, found.differences, found.arms)
    try:
        bodies = printed_contrast(*fitted, folder.run.measures)
    except ImportError as missing:
        screen.warn([f"no figure was written: {missing.name} is not installed"])
        return []
    for kind, body in bodies.items():
        store.write_whole(folder.path / f"figure.{kind}", body)
    return [str(folder.path / f"figure.{kind}") for kind in bodies]
