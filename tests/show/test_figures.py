"""What is drawn: which panels, along what, with which null; nothing where there is no value."""

from __future__ import annotations

import math

import pytest

from isoscope.results.row import Row
from isoscope.show.figures.comparison import scatter
from isoscope.show.figures.panels import Drawn, figures
from isoscope.show.measures import (
    BY_HEAD,
    COLUMNS,
    COLUMNS_WITH_ATTENTION,
    FAMILIES,
    MAIN,
    MAPS,
    OVER_STEPS,
    SHOWN,
    family_of,
    how_shown,
    in_order,
)
from tests.show.drawn import figure_of
from tests.show.made import clouds, compared, layered, part_rows, row, trained, whole
from tests.typed import frame

BETWEEN = "mean_cosine_between"


def drawn(rows: list[Row], family: str = "directions") -> Drawn:
    return figures(frame(rows), family)


def test_output_stands_after_the_last_layer_under_its_name() -> None:
    figure = figure_of(drawn(layered()).panels[0])
    assert figure.layout.xaxis.tickvals[-1] == 13
    assert figure.layout.xaxis.ticktext[-1] == "output"
    (curve,) = [trace for trace in figure.data if trace.mode == "lines+markers"]
    assert list(curve.x) == list(range(14))


def test_the_interval_is_drawn_from_end_to_end() -> None:
    rows = [row(BETWEEN, 0.3, low=0.2, high=0.35, layer=0), row(BETWEEN, 0.4, layer=1)]
    (curve,) = [trace for trace in figure_of(drawn(rows).panels[0]).data if trace.mode == "lines+markers"]
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
        assert figure_of(found.panels[0]).layout.xaxis.title.text == "step"
        assert len(found.key) == curves


def test_models_share_a_panel_and_with_steps_get_one_each_on_one_scale() -> None:
    assert len([p for p in drawn(layered("a") + layered("b", 0.5)).panels if p.measures[0] == BETWEEN]) == 1
    first, second = [p for p in drawn(trained("a") + trained("b")).panels if p.measures[0] == BETWEEN]
    assert first.heading.endswith("· a")
    assert figure_of(first).layout.yaxis.range == figure_of(second).layout.yaxis.range


def test_a_shallow_model_is_not_joined_to_the_output_across_empty_layers() -> None:
    figure = figure_of(drawn(layered("a") + layered("b", 0.5, depth=7)).panels[0])
    (curve,) = [trace for trace in figure.data if trace.name == "b"]
    assert list(curve.x) == [*range(7), None, 13]


def test_one_cloud_stands_as_dots_beside_its_null() -> None:
    (panel,) = drawn(clouds()).panels
    null, dots = figure_of(panel).data
    assert (null.mode, dots.mode) == ("markers", "markers")
    assert list(null.x)[:2] == [0.0, 0.0]
    assert dots.x[0] == 0.31


def test_nulls_that_differ_by_curve_take_its_colour() -> None:
    rows = [
        row("isoscore", 0.1, null=null, model=m, layer=i)
        for m, null in (("a", 0.9), ("b", 0.5))
        for i in (0, 1)
    ]
    dashed = [t for t in figure_of(drawn(rows, "spectrum").panels[0]).data if t.line.dash == "dash"]
    assert [list(trace.y) for trace in dashed] == [[0.9, 0.9], [0.5, 0.5]]


def test_a_wide_span_of_counts_is_logarithmic_and_says_so() -> None:
    panel = drawn(layered(), "spectrum").panels[0]
    assert (figure_of(panel).layout.yaxis.type, panel.remark) == (
        "log",
        "dotted: participation ratio, log scale",
    )


def test_undefined_values_are_not_drawn() -> None:
    assert drawn([row(BETWEEN, math.nan, layer=i) for i in range(3)]).panels == ()
    gap = drawn([row(BETWEEN, v, half=0.1, layer=i) for i, v in enumerate((0.1, math.nan, 0.3))])
    assert [list(t.x) for t in figure_of(gap.panels[0]).data if t.mode == "lines+markers"] == [[0, 2]]


def test_hover_escapes_what_models_are_called() -> None:
    rows = [row(BETWEEN, 0.1, model="<a href='x'>", layer=i, note="</b>") for i in range(2)]
    text = figure_of(drawn(rows).panels[0]).data[-1].hovertext[0]
    assert "<a" not in text
    assert "</b>" not in text.partition("<br>")[2]


def parts(family: str, models: str = "m", steps: tuple[int | None, ...] = (None,)) -> Drawn:
    rows = [
        made
        for at, model in enumerate(models)
        for step in steps
        for layer in range(4)
        for made in part_rows(0.1 + 0.05 * layer + 0.02 * at, model=model, step=step, layer=layer)
    ]
    return drawn(rows, family)


def test_bands_of_frequency_share_a_panel_with_their_intervals_and_a_key() -> None:
    first, second = parts("tokens").panels[:2]
    assert [label for label, _ in first.key] == ["rare", "in between", "frequent"]
    assert len({pair for _, pair in first.key}) == 3
    assert first.measures == ("mean_cosine_rare", "mean_cosine_middle", "mean_cosine_frequent")
    assert second.heading == "Relative drift by frequency of the token"
    curves = {t.name: t for t in figure_of(first).data if t.mode == "lines+markers"}
    assert list(curves) == ["rare", "in between", "frequent"]
    assert list(curves["rare"].y) == pytest.approx([1.4 * (0.1 + 0.05 * i) for i in range(4)])
    for curve in curves.values():
        assert list(curve.error_y.array) == pytest.approx([0.01] * 4)
        assert [round(x) for x in curve.x] == [0, 1, 2, 3]
    assert curves["rare"].x[0] < curves["in between"].x[0] == 0 < curves["frequent"].x[0]


def test_bands_of_two_models_are_a_panel_each_and_of_steps_apart_all_on_one_scale() -> None:
    two = [p for p in parts("tokens", "ab").panels if "mean_cosine_rare" in p.measures]
    assert [p.heading for p in two] == [f"Mean cosine by frequency of the token · {m}" for m in "ab"]
    apart = parts("tokens", steps=(0, 5)).panels[:3]
    assert [p.measures for p in apart] == [(f"mean_cosine_{b}",) for b in ("rare", "middle", "frequent")]
    many = parts("tokens", "abcd").panels[:3]
    assert [p.measures for p in many] == [p.measures for p in apart]
    for panels in (two, apart, many):
        assert len({tuple(figure_of(p).layout.yaxis.range) for p in panels}) == 1


def test_of_forms_of_one_thing_one_is_drawn_unless_it_is_alone() -> None:
    shown = {m for panel in parts("partition").panels for m in panel.measures}
    assert shown == {"partition_isotropy", "partition_isotropy_unit"}
    lone = [row("partition_isotropy_one_sign", 0.2, layer=i) for i in range(3)]
    assert drawn(lone, "partition").panels[0].measures == ("partition_isotropy_one_sign",)


def test_a_count_of_nothing_is_told_and_not_drawn() -> None:
    assert [p.measures for p in parts("dimensions").panels] == [
        ("outlier_dimensions",),
        ("largest_activation",),
    ]
    none = [row("massive_activations", 0.0, layer=i) for i in range(3)]
    assert len(drawn(none, "dimensions").panels) == 1
    some = [row("massive_activations", float(i), layer=i) for i in range(3)]
    assert len(drawn(some, "dimensions").panels) == 1


def test_a_model_has_one_colour_on_the_whole_page() -> None:
    rows = layered("a") + [r for i in range(3) for r in part_rows(0.2, model="b", layer=i)]
    (key,) = drawn(rows, "sequences").key
    assert key == drawn(whole("a") + whole("b"), "sequences").key[1]


def test_every_measure_has_its_place_on_the_page() -> None:
    from isoscope.measures.table import MEASURES

    assert len(MEASURES) >= 72
    assert {measure.family for measure in MEASURES} <= set(FAMILIES)
    assert all(family_of(one.name, {}) == one.family for one in MEASURES if one.name in SHOWN)
    named = {name for how in SHOWN.values() for name in (how.instead, how.beside) if name}
    named |= {*MAIN, *OVER_STEPS, *BY_HEAD, *COLUMNS, *COLUMNS_WITH_ATTENTION}
    assert named | {name for maps in MAPS.values() for name in maps} <= set(SHOWN)
    assert all(how_shown(name).heading for name in (*COLUMNS, *COLUMNS_WITH_ATTENTION))


def test_a_measure_that_the_table_does_not_have_is_shown_as_its_run_explains_it() -> None:
    told = {"brand_new": {"family": "drift", "title": "brand-new drift"}}
    rows = [row(name, 0.1 * i, layer=i) for i in range(3) for name in ("brand_new", "relative_drift")]
    assert "brand_new" not in SHOWN
    assert in_order(["brand_new", "relative_drift"], family_of("brand_new", told))[-1] == "brand_new"
    first, last = figures(frame(rows), "drift", told).panels
    assert (first.measures, last.measures) == (("relative_drift",), ("brand_new",))
    assert last.heading == "Brand-new drift"
    assert not figures(frame(rows), "directions", told).panels


def test_a_comparison_has_a_dot_a_layer_joined_in_order_and_the_square() -> None:
    relative, drift = scatter(frame(compared())).panels
    square, a, b = figure_of(relative).data
    assert list(square.y) == pytest.approx([x * x for x in square.x])
    assert (a.name, b.name, len(a.x)) == ("a", "b", 8)
    rows = {(r.model, r.kind, r.layer, r.measure): r.value for r in compared()}
    layers = [("layer", i) for i in range(7)] + [("output", None)]
    assert list(a.x) == [rows["a", *place, "relative_drift"] for place in layers]
    assert list(b.y) == [rows["b", *place, "mean_cosine"] for place in layers]
    assert list(a.marker.symbol) == ["circle-open"] + 7 * ["circle"]
    assert (figure_of(drift).layout.xaxis.type, figure_of(relative).layout.xaxis.type) == ("log", "linear")
    assert len(figure_of(drift).data) == 2


@pytest.mark.parametrize("value", [0.0, 1e-9, 4.2])
def test_one_dot_makes_a_scatter_with_ticks(value: float) -> None:
    rows = [row(m, value, kind="cloud") for m in ("drift", "relative_drift", "mean_cosine")]
    panels = scatter(frame(rows)).panels
    assert len(panels) == 1 + (value > 0)
    assert all(figure_of(panel).layout.xaxis.tickvals for panel in panels[1:])
    assert scatter(frame([row("drift", 1.0)])).panels == ()
