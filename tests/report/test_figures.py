"""What is drawn: which panels, along what, with which null; nothing where there is no value."""

from __future__ import annotations

import math

import pytest

from isoscope.report.figures import Drawn, figures
from isoscope.results.schema import Row, frame
from tests.report.made import clouds, layered, row, trained

BETWEEN = "mean_cosine_between"


def drawn(rows: list[Row], family: str = "directions") -> Drawn:
    return figures(frame(rows), family)


def test_output_stands_after_the_last_layer_under_its_name() -> None:
    figure = drawn(layered()).panels[0].figure
    assert figure.layout.xaxis.tickvals[-1] == 13
    assert figure.layout.xaxis.ticktext[-1] == "output"
    (curve,) = [trace for trace in figure.data if trace.mode == "lines+markers"]
    assert list(curve.x) == list(range(14))


def test_the_interval_is_drawn_from_end_to_end() -> None:
    rows = [row(BETWEEN, 0.3, low=0.2, high=0.35, layer=0), row(BETWEEN, 0.4, layer=1)]
    (curve,) = [trace for trace in drawn(rows).panels[0].figure.data if trace.mode == "lines+markers"]
    assert list(curve.error_y.array) == pytest.approx([0.05, 0.0])
    assert list(curve.error_y.arrayminus) == pytest.approx([0.1, 0.0])


def test_the_bare_mean_cosine_goes_beside_a_single_curve_else_apart() -> None:
    assert drawn(layered()).panels[0].measures == (BETWEEN, "mean_cosine")
    assert "mean_cosine" in [panel.measures[0] for panel in drawn(trained()).panels]


def test_one_curve_a_step_with_a_key() -> None:
    found = drawn(trained())
    assert [label for label, _ in found.key] == [f"step {step}" for step in (0, 25, 50, 100, 200, 400)]
    assert len({pair for _, pair in found.key}) == 6


def test_many_steps_or_one_site_run_along_the_steps() -> None:
    one = [row(BETWEEN, 0.1 * i, half=0.01, kind="output", step=i) for i in range(4)]
    many = [row(BETWEEN, 0.01 * i, half=0.01, layer=layer, step=i) for i in range(20) for layer in range(3)]
    for rows, curves in ((one, 0), (many, 3)):
        found = drawn(rows)
        assert found.panels[0].figure.layout.xaxis.title.text == "step"
        assert len(found.key) == curves


def test_models_share_a_panel_and_with_steps_get_one_each_on_one_scale() -> None:
    assert len([p for p in drawn(layered("a") + layered("b", 0.5)).panels if p.measures[0] == BETWEEN]) == 1
    first, second = [p for p in drawn(trained("a") + trained("b")).panels if p.measures[0] == BETWEEN]
    assert first.heading.endswith("· a")
    assert first.figure.layout.yaxis.range == second.figure.layout.yaxis.range


def test_a_shallow_model_is_not_joined_to_the_output_across_empty_layers() -> None:
    figure = drawn(layered("a") + layered("b", 0.5, depth=7)).panels[0].figure
    (curve,) = [trace for trace in figure.data if trace.name == "b"]
    assert list(curve.x) == [*range(7), None, 13]


def test_one_cloud_stands_as_dots_beside_its_null() -> None:
    (panel,) = drawn(clouds()).panels
    null, dots = panel.figure.data
    assert (null.mode, dots.mode) == ("markers", "markers")
    assert list(null.x)[:2] == [0.0, 0.0]
    assert dots.x[0] == 0.31


def test_nulls_that_differ_by_curve_take_its_colour() -> None:
    rows = [
        row("isoscore", 0.1, null=null, model=m, layer=i)
        for m, null in (("a", 0.9), ("b", 0.5))
        for i in (0, 1)
    ]
    dashed = [t for t in drawn(rows, "spectrum").panels[0].figure.data if t.line.dash == "dash"]
    assert [list(trace.y) for trace in dashed] == [[0.9, 0.9], [0.5, 0.5]]


def test_a_wide_span_of_counts_is_logarithmic_and_says_so() -> None:
    panel = drawn(layered(), "spectrum").panels[0]
    assert (panel.figure.layout.yaxis.type, panel.remark) == ("log", "log scale")


def test_undefined_values_are_not_drawn() -> None:
    assert drawn([row(BETWEEN, math.nan, layer=i) for i in range(3)]).panels == ()
    gap = drawn([row(BETWEEN, v, half=0.1, layer=i) for i, v in enumerate((0.1, math.nan, 0.3))])
    assert [list(t.x) for t in gap.panels[0].figure.data if t.mode == "lines+markers"] == [[0, 2]]


def test_hover_escapes_what_models_are_called() -> None:
    rows = [row(BETWEEN, 0.1, model="<a href='x'>", layer=i, note="</b>") for i in range(2)]
    text = drawn(rows).panels[0].figure.data[-1].hovertext[0]
    assert "<a" not in text
    assert "</b>" not in text.partition("<br>")[2]
