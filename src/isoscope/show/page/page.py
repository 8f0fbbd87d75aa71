"""One page from one run: a single file that opens from disk and asks nothing of the network.

Decided here: jinja2 escapes all text; figures travel as JSON in which `<`, `>` and `&` are written as
escapes, so no name can end a script. The policy in the page's head allows two scripts by their SHA-256 and
nothing else: the page's own, and the one that draws, which the page carries compressed (`library`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

import jinja2
import pandas as pd
from markupsafe import Markup

from isoscope.results.run import Run
from isoscope.show.colours import GRID, INK, PAPER, SOFT
from isoscope.show.draw.plotly.charts import figure
from isoscope.show.draw.plotly.library import carried, library
from isoscope.show.figures.clouds import MARKS, SERIES
from isoscope.show.figures.weights.sections import WeightSection, is_weighed, weight_sections
from isoscope.show.measures import FAMILIES, family_of, title_of
from isoscope.show.packed import written
from isoscope.show.page.markup import asset, content_policy, embedded_json, templates
from isoscope.show.page.section import Section, explanations, section_of, trained_section
from isoscope.show.page.tables import MOST_ROWS, NUMBERS, columns, facts_table, notes, table
from isoscope.show.page.training import Training, first_look, is_training, training
from isoscope.show.readings import unique
from isoscope.show.say.cost import cost, told_once
from isoscope.show.say.weights import SCALE_OF_WORDS as SCALE_OF_WEIGHTS
from isoscope.show.say.words import SCALE_OF_WORDS, headline, sentences

if TYPE_CHECKING:
    from isoscope.show.page.swept import Swept

_SCRIPTS = ("page.js", "table.js", "picker.js", "clouds.js", "weights.js", "sweep.js")


def page(
    run: Run,
    rows: pd.DataFrame,
    facts: Mapping[str, Mapping[str, object]],
    points: pd.DataFrame | None = None,
    *,
    sections: Sequence[Section] | None = None,
    said: str | None = None,
    swept: Swept | None = None,
) -> str:
    """The text of `report.html`.

    `facts` is what is known of each unit (its "notes" are shown as notes), `points` those of its pictures.
    Where `sections` are given they stand in place of one a family, and `said` is the headline. Of a sweep
    `swept` is what stands on top, with the rows of its steps as a training run has them.
    """
    of = swept.training if swept else training(rows, facts, run.measures) if is_training(run, rows) else None
    told, every, spoken = run.measures, swept.total if swept else len(rows), rows
    went_wrong = of.watch if of else None if swept else first_look(run, rows, facts)
    if of is not None:
        told, rows, spoken = of.told, of.site_rows(), of.spoken
    seen = rows[~rows["kind"].map(is_weighed).astype(bool)]
    named = [str(m) for m in seen["measure"].drop_duplicates()]
    first = [] if of is None else ["directions", "training"]  # what the headline speaks of, then the loss
    families = unique([*first, *FAMILIES, *(family_of(m, told) for m in named)])
    make = partial(section_of, seen, told, points) if of is None else partial(trained_section, of, points)
    if sections is None:
        sections = [section for f in families if f != "health" and (section := make(f))]
    weighed = [] if of and swept else weight_sections(rows, points, told, _length(run), sentences)
    own = "".join(map(asset, _SCRIPTS))
    shown = table(rows if of is None else of.last_rows(heads=False), told)
    return _template().render(
        run=run,
        headline=headline(spoken) if said is None else said,
        scale_of_words=SCALE_OF_WORDS,
        scale_of_weights=SCALE_OF_WEIGHTS,
        weighed=weighed,
        sections=sections,
        foldable=bool(weighed) or not all(section.shown.folded for section in sections),
        health=sentences(spoken, "health"),
        notes=notes(rows, facts) if of is None else notes(_noted(of.every), told_once(facts)),
        columns=columns(shown),
        table=shown,
        total=every,
        table_of=_table_of(shown, every, of),
        went_wrong=went_wrong,
        of_steps=swept.about if swept else _of_steps(of, facts),
        swept=swept,
        right=NUMBERS,
        question=facts_table(run.question),
        versions=facts_table(run.versions),
        facts=[
            (unit, lines)
            for unit, known in facts.items()
            if (lines := facts_table(known, without=("notes", "budget note")))
        ],
        css=Markup(asset("page.css")),
        library=Markup(carried()),
        script=Markup(own),
        policy=content_policy(library(), own),
        dark=embedded_json(_dark([*weighed, *sections])),
        title_of=lambda measure: title_of(measure, told),
        explanations=lambda measures: explanations(measures, told),
        figure_json=lambda panel: embedded_json(written(figure(panel.chart))),
        points_json=lambda clouds: embedded_json(clouds.data()),
        marks=[(name, pair, MARKS[symbol]) for name, pair, symbol in SERIES.values()],
    )


def _of_steps(of: Training | None, facts: Mapping[str, Mapping[str, object]]) -> str:
    return " ".join(filter(None, [of.axis.said(), cost(facts)])) if of else ""


def _noted(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that have a note."""
    return rows[rows["note"].fillna("") != ""]


def _table_of(shown: Sequence[object], every: int, of: Training | None) -> str:
    """Which rows the table holds, where it does not hold all."""
    if len(shown) == every:
        return ""
    if of is None:
        return f"The first {MOST_ROWS:,} rows are here"
    return f"The rows of sites at the last step, {of.axis.steps[-1]:,}, are here"


def _length(run: Run) -> int | None:
    """The length of the sequences that regimes were told for, where it was asked."""
    asked = run.question.get("length")
    return asked if isinstance(asked, int) else None


def _dark(sections: Iterable[Section | WeightSection]) -> dict[str, str]:
    charts = [panel.chart for section in sections for panel in section.panels]
    return dict([INK, SOFT, GRID, PAPER, *(pair for chart in charts for pair in chart.colours)])


@cache
def _template() -> jinja2.Template:
    return templates().get_template("page.html")
