"""Charts are data: both renderers draw the same numbers, of every figure in print and on the page."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
from matplotlib.figure import Figure

from isoscope.kinds.report import figures
from isoscope.show.charts import Alarm, Axis, Chart, Ground, Hover, Label, Map, Series
from isoscope.show.draw.matplotlib.charts import draw, thinned
from isoscope.show.draw.plotly.charts import figure, told_html
from tests.plot.made import KINDS, folder

NAN = math.nan


def plotted(chart: Chart) -> Any:
    """The axes of a chart in print."""
    axes = Figure(layout="constrained").subplots()
    draw(axes, chart)
    return axes


def both(chart: Chart) -> tuple[list[list[float]], list[list[float]]]:
    """The y of every line and series of dots: on the page, and in print."""
    page = [list(trace["y"]) for trace in figure(chart)["data"] if trace["type"] == "scatter"]
    wanted = [one for one in chart.series if one.style != "band"]
    page = [
        line for line, one in zip(page, chart.series, strict=True) if one in wanted and one.keyed and one.name
    ]
    names = [one.name for one in wanted if one.keyed and one.name]
    lines = {id(line): line for line in plotted(chart).lines if not str(line.get_label()).startswith("_")}
    return page, [list(line.get_ydata()) for line in lines.values()][: len(names)]


def test_both_renderers_draw_the_same_points_and_gaps() -> None:
    one = Series(
        "a", [0, 1, None, 3], [0.1, NAN, None, 0.4], [0.0, NAN, NAN, NAN], [0.2, NAN, NAN, NAN], "curve"
    )
    page, printed = both(Chart("", "x", "y", [one]))
    assert page == [[0.1, None, None, 0.4]]
    assert [None if math.isnan(y) else y for y in printed[0]] == page[0]


def test_everything_that_a_chart_can_hold_is_drawn_by_both() -> None:
    styles = ("line", "curve", "dots", "thin", "steps", "arrow")
    series = [Series(s, [1, 2], [1.0, 2.0], [0.5, NAN], [1.5, NAN], s, hollow=[True, False]) for s in styles]  # type: ignore[arg-type]
    series += [Series("band", [1, 2], [1.0, 1.0], [1.0, 1.0], [2.0, 2.0], "band")]
    chart = Chart(
        "A title", Axis("across", range=(0, 3), ticks=[(1, "one"), (2, "two")], zero=True),
        Axis("up", floor=True), series, levels=((1.0, "level"),), uprights=((1.5, ""),),
        labels=[Label(1.0, 1.0, "here"), Label(None, 2.0, "9")],
        grounds=[Ground((0, 1, 1), (0, 0, 1), ("#fff", "#000")), Ground((1, 2), (), ("#fff", "#000"), 0.5)],
        alarms=[Alarm(2.0, ["<b>"])],
    )  # fmt: skip
    drawn = go.Figure(figure(chart))
    assert len(drawn.data) == len(styles) + 2  # a band has two edges
    assert [shape.type for shape in drawn.layout.shapes] == ["path", "rect", "line", "line", "line"]
    assert "&lt;b&gt;" in [note.hovertext for note in drawn.layout.annotations]
    axes = plotted(chart)
    assert {"here", "9", "level"} <= {text.get_text() for text in axes.texts}
    assert (axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()) == ("A title", "across", "up")
    assert {"alarm", *styles} <= {line.get_label() for line in axes.lines}
    assert len(axes.patches) == 2


def test_a_map_has_the_same_cells_in_both_and_stands_below_its_lines_on_the_page() -> None:
    cells = Map(
        [1.0, 2.0], ["a", "b"], [[0.1, NAN], [0.3, 0.4]], 0, 1, Axis("layer", ticks=[("a", "a")]), [(0, "0")]
    )
    alone = Chart("", Axis("step", range=(0, 3), ticks=[(1.0, "1")]), "", map=cells)
    (heat,) = figure(alone)["data"]
    assert heat["z"] == [[0.1, None], [0.3, 0.4]]
    mesh = plotted(alone).collections[0]
    assert mesh.get_array().filled(-1).tolist() == [[0.1, -1], [0.3, 0.4]]
    with_lines = Chart("", "", "", [Series("one", [1, 2], [0.0, 1.0])], map=cells)
    layout = figure(with_lines)["layout"]
    assert layout["yaxis2"]["domain"][1] < layout["yaxis"]["domain"][0]


def test_what_is_no_number_is_written_as_null() -> None:
    one = Series("a", [0.0, math.inf], [NAN, 1.0], [0.0, 0.0], [1.0, 1.0], ids=[(math.inf,), (1,)])
    chart = Chart(
        "", Axis(range=(0.0, math.inf)), "", [one], levels=((NAN, "level"),), labels=[Label(NAN, 1.0, "")]
    )
    assert not {"NaN", "Infinity"} & set(re.findall(r"\w+", json.dumps(figure(chart))))


def test_hover_text_is_escaped() -> None:
    assert told_html(Hover("<1>", " & name", ["a<b"])) == "<b>&lt;1&gt;</b> &amp; name<br>a&lt;b"
    (trace,) = figure(Chart("", "", "", [Series("<i>", [0], [0.0], pattern=Hover("{y:.3g}", " <x>"))]))[
        "data"
    ]
    assert trace["hovertemplate"] == "<b>%{y:.3g}</b> &lt;x&gt;<extra></extra>"
    assert trace["name"] == "&lt;i&gt;"


def test_ticks_that_would_touch_are_left_out_and_the_last_one_stays() -> None:
    axes = Figure(figsize=(3, 2)).subplots()
    axes.set_xlim(0, 20)
    kept = thinned([(float(i), str(i)) for i in range(20)] + [(20.0, "output")], axes.xaxis)
    assert kept[0] == (0.0, "0") and kept[-1] == (20.0, "output")
    assert 3 < len(kept) < 21
    few = [(0.0, "0"), (10.0, "10")]
    assert thinned(few, axes.xaxis) == few


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_printed_can_be_shown_on_a_page(kind: str, tmp_path: Path) -> None:
    for one in list(figures(folder(tmp_path, kind)).values())[:14]:
        drawn = go.Figure(figure(one.charts[0]))  # plotly checks it
        assert drawn.data
