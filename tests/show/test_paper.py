"""The page of a paper: verdicts in words, every name escaped, charts as they were asked for."""

from __future__ import annotations

import json
import math
import re

import pytest

from isoscope.kinds.reproduce import paper_page
from isoscope.papers.claims import WORDS, Claim, Found, Verdict
from isoscope.papers.paper import Judged, Paper
from isoscope.results.reading import Reading
from isoscope.results.row import Row, frame
from isoscope.results.run import Run
from isoscope.show.charts import Chart, Series, prepared
from tests.show.drawn import figure_of

CHART = Chart(
    "Cosine </script><b>",
    "layer",
    "",
    [
        Series("one", [0.0, 1.0], [0.1, 0.2], [0.0, math.nan], [0.3, math.nan]),
        Series("two", [0.0, 1.0], [0.4, math.nan]),
        Series("three", [0.0, 1.0], [0.4, 0.5], style="dots"),
    ],
    levels=((0.1, "chance"),),
)
RUN = Run("reproduce", "A paper <i>", {"paper": "toy", "scale": "laptop"}, {}, {"isoscope": "0"})


def told(held: bool | None, charts: tuple[Chart, ...] = (CHART,)) -> Judged:
    rows = frame([Row.at("", "m", "", None, "cloud", None, None, "toys", Reading(3.0, 1))])
    verdict = Verdict(held, "0.1 & more.")
    claim = Claim(
        f"claim-{held}", "A <claim>", "More `code`.", "So.", lambda _: Found(rows), lambda _: verdict,
        lambda rows, points: charts,
    )  # fmt: skip
    return Judged(claim, verdict, rows, rows)


def test_verdicts_are_told_in_words_and_names_are_escaped() -> None:
    paper = Paper("toy", "A toy", "someone", (), {"all <else>": "It is a toy."})
    page = paper_page(RUN, paper, [told(True), told(False), told(None, ())], {})
    for held, sign in ((True, "✓"), (False, "✗"), (None, "?")):
        assert re.search(rf"{re.escape(sign)}</span> {WORDS[held]}</span>", page)
    body = page.split("<script>")[0]
    assert "A &lt;claim&gt;" in body
    assert "<code>code</code>" in body
    assert "all &lt;else&gt;" in body
    assert "</script><b>" not in body.replace("Cosine &lt;/script&gt;&lt;b&gt;", "")
    assert body.count('class="plot"') == 2
    for text in re.findall(r'<script type="application/json">(.*?)</script>', body):
        assert json.loads(text)["data"]


def test_a_series_keeps_its_colour_and_intervals_that_are_not_there_are_not_drawn() -> None:
    other = Chart("other", "step", "", [Series("two", [1.0, 10.0], [1.0, 2.0])], log_x=True, log_y=True)
    first, log = prepared([CHART, other])
    assert first.series[1].colour == log.series[0].colour
    figure = figure_of(first)
    assert list(figure.data[0].error_y.array) == pytest.approx([0.2, 0.0])
    assert figure.data[1].y[1] is None
    assert list(figure.layout.xaxis.tickvals) == [0, 1]
    assert (figure_of(log).layout.xaxis.type, log.remark) == ("log", "log scale")


def test_many_series_are_told_apart_and_ordered_ones_by_shade() -> None:
    many = Chart("many", "x", "", [Series(str(i), [0.0], [0.0], style="dots") for i in range(9)])
    (own,) = prepared([many])
    assert len({(one.colour, one.mark, one.dash) for one in own.series}) == 9
    (shades,) = prepared([Chart("o", "x", "", many.series[:3], ordered=True)])
    assert len({one.colour for one in shades.series}) == 3


def test_names_stand_side_by_side_unless_the_key_says_them() -> None:
    named = Chart("n", "", "", [Series("a", ["left", "right"], [0.0, 1.0], style="dots")])
    assert figure_of(prepared([named])[0]).layout.xaxis.showticklabels
    keyed = Chart("n", "", "", [Series(name, [name], [0.0], style="dots") for name in "ab"])
    assert not figure_of(prepared([keyed])[0]).layout.xaxis.showticklabels


def test_a_series_of_unequal_lengths_is_refused() -> None:
    with pytest.raises(ValueError, match="2 x"):
        Series("a", [0.0, 1.0], [0.0])


def test_a_centred_chart_has_the_origin_in_its_middle() -> None:
    chart = Chart("", "", "", [Series("a", [1.0, -4.0], [2.0, math.nan])], centred=True)
    drawn = figure_of(prepared([chart])[0])
    assert list(drawn.layout.xaxis.range) == list(drawn.layout.yaxis.range) == pytest.approx([-4.2, 4.2])
    (empty,) = prepared([Chart("", "", "", [], centred=True)])
    assert empty.across.range is not None
    assert empty.across.range[1] > 0
