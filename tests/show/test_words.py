"""What the page says: right for every shape of run, and silent where the numbers are."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from isoscope.results.row import Row
from isoscope.show.measures import FAMILIES
from isoscope.show.readings import read
from isoscope.show.say.words import GRADES, STRONG, WEAK, grade, headline, sentences
from tests.show.made import attended, compared, layered, row, trained, whole
from tests.typed import frame

BETWEEN = "mean_cosine_between"


def said(rows: list[Row]) -> str:
    return headline(frame(rows))


def test_layers_are_grouped_by_the_word_they_earn() -> None:
    assert said(layered()) == (
        "Layers 10–11 of bert-base-uncased are strongly anisotropic: mean cosine between sequences "
        "0.56–0.68; an isotropic cloud has 0. In layers 0–9, 12 and the output it is 0.10–0.48."
    )


@pytest.mark.parametrize("measure", [BETWEEN, "mean_cosine"])
def test_nothing_measured_is_said_so(measure: str) -> None:
    text = said([row(measure, math.nan, note="needs 2 sequences")])
    assert "undefined everywhere" in text if measure == BETWEEN else "was not measured" in text
    assert "nan" not in text.lower()


def test_words_follow_the_near_end_of_the_interval() -> None:
    strong, middle, weak = GRADES
    for value, word in (
        (STRONG + 0.02, strong),
        (STRONG + 0.005, middle),
        (WEAK + 0.005, weak),
        (0.005, "untold"),
    ):
        (reading,) = read(frame([row(BETWEEN, value, half=0.01)]))
        assert grade(reading) == word


def test_training_tells_what_rose_and_where_nothing_can_be_told() -> None:
    assert said(trained()) == (
        "From step 0 to step 400 of small the mean cosine between sequences rose in layers 1–4 and the "
        "output, most in layer 4 (from 0.002 to 0.30); in layer 0 no change is distinguishable from chance "
        "(intervals not paired)."
    )


def along(*values: float, half: float | None = 0.01, layer: int = 0) -> list[Row]:
    return [row(BETWEEN, value, half=half, step=100 * i, layer=layer) for i, value in enumerate(values)]


def test_training_where_the_first_step_has_no_value() -> None:
    text = said(along(math.nan, 0.3, 0.5))
    assert text.startswith("From step 100 to step 200 of m")
    apart = [row(BETWEEN, 0.3, half=0.01, step=0, layer=0), row(BETWEEN, 0.4, half=0.01, step=9, layer=1)]
    assert said(apart).startswith("Layer 1 of m at step 9 is anisotropic")


def test_revisions_tell_models_apart_only_where_they_must() -> None:
    two = [row(BETWEEN, 0.3, half=0.01, revision=revision) for revision in ("x", "y")]
    assert "of m@x and" in said(two)
    steps = [row(BETWEEN, 0.3, half=0.01, revision=f"step{i}", step=i) for i in (0, 1)]
    assert "m@" not in said(steps)


def test_several_models_get_a_line_each() -> None:
    rows = [r for name in "abcd" for r in layered(name)]
    lines = sentences(frame(rows), "directions").split("\n")
    assert [line[:2] for line in lines] == ["a:", "b:", "c:", "Th"]
    assert lines[-1] == "The figure shows one more."


@pytest.mark.parametrize("family", [*FAMILIES, "other"])
def test_undefined_values_make_no_sentence(family: str) -> None:
    known = [*trained(), *compared()]
    rows = [row(r.measure, math.nan, step=r.step, kind=r.kind, layer=r.layer) for r in known]
    assert sentences(frame(rows), family) == ""
    assert sentences(frame([]), family) == ""


def test_words_load_neither_plotly_nor_torch() -> None:
    code = "import sys, isoscope.show.say.words; print({'plotly', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_below_the_null_nothing_is_claimed() -> None:
    assert said([row(BETWEEN, -0.2, half=0.05)]).startswith("No anisotropy is shown in layer 0 of m")


@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in ("comparison", "live")])
def test_a_paragraph_is_short(family: str) -> None:
    for line in sentences(frame([*whole(), *attended()]), family).split(". "):
        assert len(line.split()) <= 45
