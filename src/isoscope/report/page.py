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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import jinja2
import pandas as pd
from markupsafe import Markup

from isoscope.report.clouds import MARKS, SERIES, Album, album
from isoscope.report.colours import GRID, INK, PAPER, SOFT, Pair
from isoscope.report.families import FAMILIES, Family, Told, family_of, in_order, shown_in, title_of
from isoscope.report.figures import Drawn, Panel, figures
from isoscope.report.maps import colours, maps
from isoscope.report.readings import unique
from isoscope.report.scatter import scatter
from isoscope.report.sentences_weights import SCALE_OF_WORDS as SCALE_OF_WEIGHTS
from isoscope.report.tables import MOST_ROWS, NUMBERS, columns, facts_table, notes, table
from isoscope.report.weights import WeightSection, is_weighed, weight_sections
from isoscope.report.words import CLAIM, SCALE_OF_WORDS, headline, sentences
from isoscope.results.schema import Run

_EXPLAINED = ("formula", "says", "misleads", "null", "range", "interval", "source")
_SCRIPTS = ("page.js", "picker.js", "clouds.js", "weights.js")

Explanation = tuple[str, str, tuple[tuple[str, str], ...]]
"""A measure's name, its title, and the parts of what the run tells of it."""


@dataclass(frozen=True)
class Section:
    """A family on the page: its question, what it says, its panels: the claim's large in front, maps last.

    `clouds` are the pictures of queries and keys, in their section.
    """

    family: str
    shown: Family
    words: str
    large: tuple[Panel, ...]
    small: tuple[Panel, ...]
    maps: tuple[Panel, ...]
    drawn: Drawn
    explained: tuple[Explanation, ...]
    clouds: Album | None = None

    @property
    def id(self) -> str:
        """What a link to it is called."""
        return self.family.replace(" ", "-")

    @property
    def colours(self) -> tuple[Pair, ...]:
        """Every colour in its figures."""
        clouds = self.clouds.colours if self.clouds else ()
        return (*self.drawn.colours, *colours(self.maps), *clouds)

    @property
    def wide(self) -> bool:
        """Whether panels stand two in a row: two models, or a number that three would leave gaps in."""
        return self.drawn.across == 2 or (self.drawn.across == 1 and len(self.small) in (2, 4))

    @property
    def wide_maps(self) -> bool:
        """The same of the maps, and where there is one: it need not be as wide as the page."""
        return self.drawn.across == 2 or len(self.maps) in (1, 2, 4)


def page(
    run: Run,
    rows: pd.DataFrame,
    facts: Mapping[str, Mapping[str, object]],
    points: pd.DataFrame | None = None,
) -> str:
    """The text of `report.html`.

    `facts` is what is known of each unit (its "notes" are shown as notes), `points` those of its pictures.
    """
    told = run.measures
    seen = rows[~rows["kind"].map(is_weighed).astype(bool)]
    named = [str(m) for m in seen["measure"].drop_duplicates()]
    families = unique([*FAMILIES, *(family_of(m, told) for m in named)])
    sections = [section for f in families if f != "health" and (section := _section(run, seen, f, points))]
    weighed = weight_sections(rows, points, told, _length(run), sentences)
    plotly, own = _plotly(), "".join(map(_file, _SCRIPTS))
    shown = table(rows, told)
    return _template().render(
        run=run,
        headline=headline(rows),
        scale_of_words=SCALE_OF_WORDS,
        scale_of_weights=SCALE_OF_WEIGHTS,
        weighed=weighed,
        sections=sections,
        foldable=bool(weighed) or not all(section.shown.folded for section in sections),
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
        dark=_json(_dark([*weighed, *sections])),
        title_of=lambda measure: title_of(measure, told),
        explanations=lambda measures: _explanations(measures, told),
        figure_json=lambda panel: _json(json.loads(panel.figure.to_json())),
        points_json=lambda clouds: _json(clouds.data()),
        marks=[(name, pair, MARKS[symbol]) for name, pair, symbol in SERIES.values()],
    )


def _section(run: Run, rows: pd.DataFrame, family: str, points: pd.DataFrame | None) -> Section | None:
    drawn = scatter(rows) if family == "comparison" else figures(rows, family, run.measures)
    mapped = maps(rows, family, run.measures)
    named = [str(m) for m in rows["measure"].drop_duplicates()]
    covered = in_order([m for m in named if family_of(m, run.measures) == family], family)
    if not (drawn.panels or mapped) or not covered:
        return None
    shown = [m for m in named if shown_in(m, family, run.measures)]
    return Section(
        family=family,
        shown=FAMILIES.get(family) or Family(family.replace("_", " ").capitalize(), "", ()),
        words=sentences(rows[rows["measure"].isin(shown)], family),
        large=tuple(p for p in drawn.panels if p.measures[0] == CLAIM),
        small=tuple(p for p in drawn.panels if p.measures[0] != CLAIM),
        maps=mapped,
        drawn=drawn,
        explained=_explanations(covered, run.measures),
        clouds=album(points, rows) if family == "queries" else None,
    )


def _explanations(measures: Iterable[str], told: Told) -> tuple[Explanation, ...]:
    """Those of these measures that the run explains: name, title, and each part of the explanation."""
    found = [(m, title_of(m, told), _explained(told.get(m, {}))) for m in measures]
    return tuple(item for item in found if item[2])


def _explained(told: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((key, str(told[key])) for key in _EXPLAINED if told.get(key))


def _length(run: Run) -> int | None:
    """The length of the sequences that regimes were told for, where it was asked."""
    asked = run.question.get("length")
    return asked if isinstance(asked, int) else None


def _dark(sections: Iterable[Section | WeightSection]) -> dict[str, str]:
    return dict([INK, SOFT, GRID, PAPER, *(pair for section in sections for pair in section.colours)])


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
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_file),
    )
    return room.get_template("page.html")
