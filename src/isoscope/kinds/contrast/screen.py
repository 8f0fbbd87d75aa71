"""The terminal output of a contrast: a table of arms × quantities, and what was found."""

from __future__ import annotations

import pandas as pd

from isoscope.formatting import ABSENT, short
from isoscope.kinds.contrast.sentences import as_they_came, finding, fitted, reach
from isoscope.kinds.screen import WIDTH, Column, Screen, Table, notes_of, records
from isoscope.lab.contrast.fit import Fitted
from isoscope.results.store import RunFolder
from isoscope.show.measures import Told, title_of

_MOST = 6  # quantities in the table; the page has all
_INTERVAL = 17  # columns of "[−0.058, −0.0094]"


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """The table of differences from the reference, and the sentence on them."""
    found, told = fitted(folder), folder.run.measures
    tables = (_table(found, told),) if len(found.differences) else ()
    shown = (*tables, finding(found.differences, found.arms, told))
    return Screen(shown, notes_of(folder.facts()), {"differences": records(found.differences)})


def _table(found: Fitted, told: Told) -> Table:
    """A line per arm, a column per quantity: the difference from the reference, mean over layers."""
    whole = found.differences[found.differences["layer"] == 0]
    at = whole["at"].dropna()
    where = f" at an entropy of {short(at.iloc[0], 2)}" if len(at) and at.max() - at.min() < 0.02 else ""
    seeds = int(whole["n"].max())
    kind = "95 % interval; * it excludes 0" if whole["low"].notna().any() else "least, most of the seeds"
    caption = f"difference from {found.arms[0]}{where}, mean over layers [{kind}], {seeds} seeds"
    measures = [str(m) for m in whole["measure"].drop_duplicates()][:_MOST]
    lines = []
    if as_they_came(found.differences):
        own = found.points[(found.points["layer"] == 0) & (found.points["arm"] == found.arms[0])]
        means = own.groupby("measure")["value"].mean()
        lines.append((f"{found.arms[0]}: its own", *(_mean(means.get(name)) for name in measures)))
    for arm in found.arms[1:]:
        cells = {line["measure"]: _cell(line) for _, line in whole[whole["arm"] == arm].iterrows()}
        lines.append((arm, *(cells.get(measure, "") for measure in measures)))
    columns = [Column(title_of(measure, told), folds=True, least=_INTERVAL) for measure in measures]
    return Table((Column("arm", right=False), *columns), tuple(lines), caption=caption)


def _mean(value: float | None) -> str:
    return ABSENT if value is None or pd.isna(value) else short(value)


def _cell(line: pd.Series) -> str:
    """Value and interval, marked where that excludes 0; the spread of the seeds where there is none."""
    if pd.isna(line["value"]):
        return ABSENT
    low, high, bounded = reach(line)
    mark = "*" if bounded and not low <= 0 <= high else ""
    return f"{short(line['value'], 2)}{mark}\n[{short(low, 2)}, {short(high, 2)}]"
