"""One page from one run: a single file that opens from disk and asks nothing of the network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd

from isoscope.results.run import Run
from isoscope.show.figures.clouds import MARKS, SERIES
from isoscope.show.measures import FAMILIES, family_of
from isoscope.show.page.markup import rendered
from isoscope.show.page.section import Section, is_weighed, section_of, trained_section, weight_sections
from isoscope.show.page.tables import MOST_ROWS, notes, table
from isoscope.show.page.training import Swept, Training, is_training, probed, training_of, watch
from isoscope.show.readings import unique
from isoscope.show.say.course import Facts, cost, told_once
from isoscope.show.say.weights import SCALE_OF_WEIGHTS
from isoscope.show.say.words import SCALE_OF_WORDS, headline, sentences


def page(
    run: Run, rows: pd.DataFrame, facts: Facts, points: pd.DataFrame | None = None, *,
    sections: Sequence[Section] | None = None, said: str | None = None, swept: Swept | None = None,
) -> str:  # fmt: skip
    """The text of `report.html`, by default with a section per family and the headline of the rows.

    `facts` is what is known of each unit, `points` those of its pictures. Of a sweep `swept` is what
    stands on top, with the rows of its steps as a training run has them.
    """
    of = swept.training if swept else training_of(run, rows, facts)
    told, total, spoken, listed, noted = run.measures, swept.total if swept else len(rows), rows, rows, rows
    remarks, left_out = facts, f"The first {MOST_ROWS:,} rows are here"
    sections = sections_of(run, rows, points, of) if sections is None else sections
    went_wrong = watch(probed(rows), facts) if not swept and is_training(run, rows, looks=0) else None
    if of is not None:
        told, spoken, listed = of.told, of.spoken, of.last_rows(heads=False)
        went_wrong, remarks = of.watch, told_once(facts)
        noted = of.every[of.every["note"].fillna("") != ""]
        left_out = f"The rows of sites at the last step, {of.axis.steps[-1]:,}, are here"
    shown = table(listed, told)
    panels = [panel for section in sections for panel in section.panels]
    values = {
        "headline": headline(spoken) if said is None else said, "sections": sections, "swept": swept,
        "foldable": not all(section.shown.folded for section in sections), "went_wrong": went_wrong,
        "scale_of_words": SCALE_OF_WORDS, "scale_of_weights": SCALE_OF_WEIGHTS,
        "of_steps": swept.about if swept else f"{of.axis.said()} {cost(facts)}".strip() if of else "",
        "health": sentences(spoken, "health"), "notes": notes(noted, remarks),
        "table": shown, "total": total, "table_of": "" if len(shown) == total else left_out,
        "marks": [(name, pair, MARKS[symbol]) for name, pair, symbol in SERIES.values()],
    }  # fmt: skip
    colours = [pair for panel in panels for pair in panel.chart.colours]
    return rendered("page.html", run, facts, colours, values)


def sections_of(
    run: Run, rows: pd.DataFrame, points: pd.DataFrame | None, of: Training | None
) -> list[Section]:
    """The sections of the page of a run of no special kind, in order; `of` is its training, if it is one."""
    told, rows = (of.told, of.site_rows()) if of else (run.measures, rows)
    weighed = weight_sections(rows, points, told, run.question.get("length"))
    seen = rows[~rows["kind"].map(is_weighed).astype(bool)]
    families = (family_of(str(m), told) for m in seen["measure"].drop_duplicates())
    make = partial(trained_section, of, points) if of else partial(section_of, seen, told, points)
    first = ["directions", "training"] if of else []  # what the headline speaks of, then the loss
    named = unique([*first, *FAMILIES, *families])
    found = [section for family in named if family != "health" and (section := make(family))]
    return [*weighed, *found]
