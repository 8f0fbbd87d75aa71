"""What a notebook shows of rows: the headline in words and a small table, as HTML without any script."""

from __future__ import annotations

import html
from collections.abc import Iterable

import pandas as pd

from isoscope.formatting import listed, short
from isoscope.show.measures import MAIN
from isoscope.show.readings import SiteReading, models, read, steps, unique
from isoscope.show.say.words import headline

MOST_LINES = 30
MOST_MEASURES = 6
MOST_NOTES = 4


def html_of(rows: pd.DataFrame, notes: Iterable[str] = ()) -> str:
    """The headline, the table and the notes of what was measured."""
    if rows.empty:
        return "<p>No rows: nothing was measured.</p>"
    whole = [r for r in read(rows[rows["head"].isna()]) if r.kind != "comparison"]
    last = steps(whole)[-1:]
    shown = [r for r in whole if not last or r.step in (None, last[0])]
    parts = [f"<p>{html.escape(headline(rows))}</p>"]
    parts += [_table(shown, len(rows))] if shown else []
    told = unique(map(str, notes))
    items = "".join(f"<li>{html.escape(note)}</li>" for note in told[:MOST_NOTES])
    more = f"<li>and {len(told) - MOST_NOTES} more notes</li>" if len(told) > MOST_NOTES else ""
    listed_notes = f"<ul>{items}{more}</ul>" if told else ""
    return f'<div class="tex2jax_ignore">{"".join(parts)}{listed_notes}</div>'  # `$` begins no formula


def _table(shown: list[SiteReading], rows: int) -> str:
    there = unique(r.measure for r in shown if r.known) or unique(r.measure for r in shown)
    named = [m for m in MAIN if m in there] + [m for m in there if m not in MAIN]
    columns = named[:MOST_MEASURES]
    first = 0 if len(models(shown)) > 1 else 1  # the model is named where there are several
    at = {(r.model, r.site, r.measure): r for r in shown}
    sites = list(dict.fromkeys((r.model, r.site) for r in shown))
    body = "".join(
        f"<tr>{_names(site[first:])}{''.join(f'<td>{_cell(at.get((*site, m)))}</td>' for m in columns)}</tr>"
        for site in sites[:MOST_LINES]
    )
    left = [f"{len(sites) - MOST_LINES} sites"] if len(sites) > MOST_LINES else []
    left += [f"{len(named) - MOST_MEASURES} measures"] if len(named) > MOST_MEASURES else []
    rest = f"{listed(left)} more are in " if left else "they are in "
    caption = f"<p>{rows:,} rows; {rest}<code>.frame()</code>.</p>"
    head = _names(("model", "site", *columns)[first:])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{caption}"


def _names(names: Iterable[str]) -> str:
    return "".join(f"<th>{html.escape(name)}</th>" for name in names)


def _cell(reading: SiteReading | None) -> str:
    """The value, under it the interval; what is not there with its reason, where the pointer rests."""
    if reading is None:
        return ""
    if not reading.known:
        return f'<span title="{html.escape(reading.note, quote=True)}">–</span>'
    interval = f"<br><small>{html.escape(reading.interval)}</small>" if reading.bounded else ""
    return f"{html.escape(short(reading.value))}{interval}"
