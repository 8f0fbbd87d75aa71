"""Small functions on which sentences and figures rest, each by an example."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from markupsafe import Markup

from isoscope.show.colours import sequence
from isoscope.show.draw.matplotlib.style import plain
from isoscope.show.figures import albums
from isoscope.show.figures.step_axis import spaced, step_axis
from isoscope.show.measures import Shown, family_of, how_shown, in_order, shown_in
from isoscope.show.page.markup import coded
from isoscope.show.readings import read, where
from isoscope.show.say import words
from isoscope.show.say.course import cost
from isoscope.show.say.shapes import percent
from isoscope.show.say.weights import fisher
from isoscope.show.watch.watch import wanting


def test_the_last_of_a_sequence_of_colours_is_darkest_on_paper_and_brightest_on_a_screen() -> None:
    assert sequence(2) == [("#4fc36a", "#2c738e"), ("#440154", "#fde725")]


def test_names_stand_in_figures_as_they_are_written() -> None:
    assert plain("a$b_c$") == "a\\$b_c\\$"
    assert plain("_hidden") == " _hidden"
    assert plain("organisation/model-of-a-very-long-name", 20) == "…of-a-very-long-name"


def test_steps_are_spaced_evenly_with_both_ends() -> None:
    assert spaced([0, 1, 2, 3, 4, 5, 6], 4) == [0, 2, 4, 6]
    assert step_axis(range(1000)).steps[:4] == (0, 13, 25, 38)
    assert step_axis([0, 1, 2, 4, 8, 16, 32]).log
    assert albums.called(["step 000040", "pythia"]) == ("40", "pythia")


def test_a_measure_is_shown_by_its_line_or_the_defaults() -> None:
    assert how_shown("entropy").instead == "normalised_entropy"
    assert how_shown("new") == Shown()
    assert family_of("drift", {}) == "drift"
    assert family_of("entropy", {"entropy": {"family": "attention"}}) == "attention"
    assert [shown_in("sink_mass", name, {}) for name in ("attention", "drift in attention")] == [True, True]
    assert not shown_in("sink_mass", "drift", {})
    assert in_order(["mean_norm", "new", "relative_drift"], "drift") == ["relative_drift", "mean_norm", "new"]


def test_words_are_written_as_people_read_them() -> None:
    assert coded("see `a<b`") == Markup("see <code>a&lt;b</code>")
    assert (percent(0.4092), percent(0.00095)) == ("41 %", "0.095 %")
    assert (words.called("/runs/models/f5d8"), words.called("google/bert-base")) == (
        "f5d8",
        "google/bert-base",
    )
    assert wanting(Path("runs/nowhere"), ()) == "waiting for runs/nowhere: the folder is not there"
    spent = {"step 000000": {}, "step 000009": {"budget": {"share spent": 0.0173}}}
    assert cost(spent) == "Looking added 1.7 % to the time of training up to step 9, the last look."


def test_layers_that_follow_each_other_are_a_range() -> None:
    row = {"model": "m", "revision": "", "step": None, "kind": "layer", "head": None, "measure": "drift"}
    row |= {"value": 0, "n": 1, "null": 0, "low": 0, "high": 0, "note": ""}
    assert where(read(pd.DataFrame([row | {"layer": i} for i in (0, 2, 3, 4)]))) == "layers 0 and 2–4"


def test_independent_chances_are_joined_by_fishers_method() -> None:
    assert (round(fisher([0.3]), 4), round(fisher([0.1, 0.1]), 4)) == (0.3, 0.0561)
