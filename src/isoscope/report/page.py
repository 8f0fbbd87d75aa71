"""One page from one run: a single file that opens from disk and asks nothing of the network.

Decided here: jinja2 escapes all text; figures travel as JSON in which `<`, `>` and `&` are written as
escapes, so no name can end a script. The policy in the page's head allows the two scripts below by
their SHA-256 and nothing else. plotly ships one build only (4.8 MB, no smaller one is in the package);
it is inlined once, so the page stays one file.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import jinja2
import pandas as pd
from markupsafe import Markup

from isoscope.report.colours import GRID, INK, PAPER, SOFT, Pair
from isoscope.report.figures import Drawn, Panel, figures, title_of
from isoscope.report.readings import FAMILIES, family_of, unique
from isoscope.report.tables import MOST_ROWS, NUMBERS, columns, facts_table, notes, table
from isoscope.report.words import CLAIM, SCALE_OF_WORDS, headline, sentences
from isoscope.results.schema import Run

_HEADINGS = {
    "directions": "Directions",
    "drift": "Drift",
    "spectrum": "Spectrum",
    "training": "Training",
}
_ASKS = {
    "directions": "Do the vectors point the same way?",
    "drift": "Is the cloud centred on the origin?",
    "spectrum": "How many directions carry the variance?",
    "training": "How did the model learn meanwhile?",
}
_EXPLAINED = ("formula", "says", "misleads", "null", "range", "interval", "source")


@dataclass(frozen=True)
class Section:
    """A family on the page: its question, what it says, its panels, those of the claim large in front."""

    family: str
    heading: str
    asks: str
    words: str
    large: tuple[Panel, ...]
    small: tuple[Panel, ...]
    drawn: Drawn
    explained: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...]


def page(run: Run, rows: pd.DataFrame, facts: Mapping[str, Mapping[str, object]]) -> str:
    """The text of `report.html`; `facts` is what is known of each unit (its "notes" are shown as notes)."""
    told = run.measures
    named = [str(m) for m in rows["measure"].drop_duplicates()]
    families = unique([*_HEADINGS, *(family_of(m, told) for m in named if family_of(m, told) != "health")])
    sections = [section for family in families if (section := _section(run, rows, family))]
    plotly, own = _plotly(), _file("page.js")
    shown = table(rows, told)
    return _template().render(
        run=run,
        headline=headline(rows),
        scale_of_words=SCALE_OF_WORDS,
        sections=sections,
        health=sentences(rows, "health"),
        notes=notes(rows, facts),
        columns=columns(shown),
        table=shown,
        total=len(rows),
        most=MOST_ROWS,
        right=NUMBERS,
        question=facts_table(run.question),
        versions=facts_table(run.versions),
        facts=[
            (unit, lines)
            for unit, known in facts.items()
            if (lines := facts_table(known, without=("notes",)))
        ],
        css=Markup(_file("page.css")),
        plotly=Markup(plotly),
        script=Markup(own),
        policy=_policy(plotly, own),
        dark=_json(_dark(sections)),
        title_of=lambda measure: title_of(measure, told),
        figure_json=lambda panel: _json(json.loads(panel.figure.to_json())),
    )


def _section(run: Run, rows: pd.DataFrame, family: str) -> Section | None:
    drawn = figures(rows, family, run.measures)
    if not drawn.panels:
        return None
    there = {str(m) for m in rows["measure"]}
    covered = [m for m in unique([*FAMILIES.get(family, ()), *sorted(there)]) if m in there]
    covered = [m for m in covered if family_of(m, run.measures) == family]
    explained = tuple((m, title_of(m, run.measures), _explained(run.measures.get(m, {}))) for m in covered)
    return Section(
        family=family,
        heading=_HEADINGS.get(family, family.replace("_", " ").capitalize()),
        asks=_ASKS.get(family, ""),
        words=sentences(rows[rows["measure"].isin(covered)], family),
        large=tuple(p for p in drawn.panels if p.measures[0] == CLAIM),
        small=tuple(p for p in drawn.panels if p.measures[0] != CLAIM),
        drawn=drawn,
        explained=tuple(item for item in explained if item[2]),
    )


def _explained(told: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((key, str(told[key])) for key in _EXPLAINED if told.get(key))


def _dark(sections: list[Section]) -> dict[str, str]:
    pairs: list[Pair] = [INK, SOFT, GRID, PAPER]
    pairs += [pair for section in sections for pair in section.drawn.colours]
    return dict(pairs)


def _json(value: object) -> Markup:
    """JSON that is harmless inside a script element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _policy(*scripts: str) -> str:
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _file(name: str) -> str:
    return files("isoscope.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


@cache
def _template() -> jinja2.Template:
    room = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return room.from_string(_file("page.html"))
