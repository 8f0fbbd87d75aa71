"""The page of weights: the plane and its regimes, the head that is picked, vocabulary, norm, and words."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pandas as pd
import pytest

from isoscope.results.row import Row
from isoscope.show.colours import MODELS
from isoscope.show.figures.maps import maps
from isoscope.show.figures.weights import heads as albums
from isoscope.show.figures.weights import norms, vocabulary
from isoscope.show.figures.weights.heads import heads
from isoscope.show.figures.weights.planes import NEVER, SURE, planes
from isoscope.show.page.page import page
from isoscope.show.page.section import weight_sections
from isoscope.show.readings import read
from isoscope.show.regimes import REGIMES, regime_of
from isoscope.show.say.words import headline
from tests.show import made_weights as made
from tests.show.drawn import figure_of
from tests.show.made import attended, layered, row, whole
from tests.typed import frame

WORDS = frame(made.weighed(data=True))


def a_page(rows: list[Row], points: pd.DataFrame | None = None) -> str:
    text = page(made.a_weights_run(), frame(rows), {}, points)
    return re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)


def sections(text: str) -> list[str]:
    return re.findall(r'<(?:section|details class="section") id="([\w-]+)">', text)


def test_every_head_is_one_point_of_its_regimes_colour() -> None:
    rows = made.heads()
    (panel,) = planes(frame(rows), made.LENGTH)
    *regimes, ring = figure_of(panel).data
    assert (ring.name, ring.x) == ("chosen", (None,))
    traces = {(r.layer, r.head): r for r in rows if r.measure == "trace" and r.head is not None}
    scales = {(r.layer, r.head): r for r in rows if r.measure == "frobenius" and r.head is not None}
    shown = {}
    for trace in regimes:
        for x, y, (_, layer, head) in zip(trace.x, trace.y, trace.customdata, strict=True):
            shown[layer, head] = (math.sinh(x), 10**y, trace.marker.color)
    assert len(shown) == len(traces) == 72
    for at, (theta, scale, colour) in shown.items():
        assert theta == pytest.approx(traces[at].value)
        assert scale == pytest.approx(scales[at].value)
        assert colour == REGIMES[traces[at].note.removeprefix("regime: ")].colour[0]
    assert [label for label, _ in panel.key] == [
        one.label for name, one in REGIMES.items() if any(name == r.note[8:] for r in traces.values())
    ]


def inside(x: float, y: float, path: str) -> bool:
    """Whether a point is in the polygon of an SVG path of straight lines."""
    corners = [tuple(map(float, pair.split(","))) for pair in path.strip("MZ").split(" L")]
    crossed = False
    for (x0, y0), (x1, y1) in zip(corners, [*corners[1:], corners[0]], strict=True):
        if (y0 > y) != (y1 > y) and x < x0 + (x1 - x0) * (y - y0) / (y1 - y0):
            crossed = not crossed
    return crossed


@pytest.mark.parametrize("theta", [-8.0, -1.5, -0.4, 0.3, 1.9, 2.2, 9.0])
@pytest.mark.parametrize("share", [-1.0, 0.0, 1.0])
def test_areas_are_those_of_the_inequality(theta: float, share: float) -> None:
    """Localised is |θ|/2 > √(‖W‖²/3 + tr W²/4): pale for some tr W², sure for every one."""
    (panel,) = planes(frame(made.head_rows(1, 0, 1.0, 1.0)), made.LENGTH)
    paths = [shape.path for shape in figure_of(panel).layout.shapes if shape.type == "path"]
    pale, sure = paths[:4], paths[4:8]
    for scale in (0.05, 0.2, 0.7, 1.1, 3.0, 8.0):
        localised = abs(theta) / 2 > math.sqrt(scale**2 / 3 + share * scale**2 / 4)
        x, y = math.asinh(theta), math.log10(scale)
        assert any(inside(x, y, path) for path in pale) == (scale < NEVER * abs(theta))
        assert any(inside(x, y, path) for path in sure) == (scale < SURE * abs(theta))
        assert not localised or scale < NEVER * abs(theta)
        assert localised or scale >= SURE * abs(theta)


def test_every_head_is_in_the_picture_however_far() -> None:
    rows = made.head_rows(1, 0, 900.0, 1e-5) + made.head_rows(1, 1, -0.001, 4e3)
    (panel,) = planes(frame(rows), None)
    across, up = figure_of(panel).layout.xaxis.range, figure_of(panel).layout.yaxis.range
    for trace in figure_of(panel).data[:-1]:
        assert all(across[0] < x < across[1] for x in trace.x)
        assert all(up[0] < y < up[1] for y in trace.y)
    assert len(figure_of(panel).layout.xaxis.tickvals) > 5


def test_planes_are_told_apart_by_kind_model_and_data() -> None:
    cross = made.heads(2, 3, kind="cross_query_key")
    rows = [*made.heads(2, 3), *cross, *made.heads(2, 3, model="b")]
    headings = [panel.heading for panel in planes(frame(rows), 512)]
    assert headings == [
        "Every head by its weights · m · self-attention",
        "Every head by its weights · m · cross-attention",
        "Every head by its weights · b · self-attention",
    ]
    weights, data = planes(frame([*made.heads(), *made.on_data()]), 512)
    for axis in ("xaxis", "yaxis"):
        assert figure_of(weights).layout[axis].range == figure_of(data).layout[axis].range
    assert planes(frame(layered()), 512) == ()


def test_the_plane_shows_the_last_step() -> None:
    rows = made.head_rows(1, 0, 1.0, 0.2, step=0) + made.head_rows(1, 0, -1.0, 0.2, step=9)
    (panel,) = planes(frame(rows), 512)
    early, _ = figure_of(panel).data
    assert math.sinh(early.x[0]) == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("note", "regime"), [("regime: late", "late"), ("regime: middle_early; simulation", "middle_early"),
                         ("regime: new", "undecided"), ("", "undecided")]
)  # fmt: skip
def test_the_note_of_a_trace_tells_the_regime(note: str, regime: str) -> None:
    (reading,) = read(frame([row("trace", 1.0, kind="query_key", layer=1, head=0, note=note)]))
    assert regime_of(reading) == regime


def test_an_album_holds_every_head_and_opens_at_the_most_localised() -> None:
    found = heads(made.pictures(), frame(made.heads()))
    assert found is not None
    assert len(found.heads) == 72
    assert list(found.panels) == ["spectrum", "predicted"]
    rows = [r for r in made.heads() if r.head is not None]
    scale = {(r.layer, r.head): r.value for r in rows if r.measure == "frobenius"}
    decided = [r for r in rows if r.measure == "trace" and r.note != "regime: undecided"]
    best = max(decided, key=lambda r: abs(r.value) / scale[r.layer, r.head])
    assert found.first == (0, "query_key", best.layer, best.head)
    json.dumps(found.data(), allow_nan=False)
    with_data = heads(made.pictures(data=True), frame(made.heads()))
    assert with_data is not None
    assert list(with_data.panels) == ["spectrum", "predicted", "measured"]
    assert set(with_data.heads[0, "query_key", 1, 0]) == {"eigenvalue", "predicted", "random", "measured"}


def test_an_album_of_many_heads_keeps_the_largest_eigenvalues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(albums, "MOST", 4 * 72)
    points = made.pictures()
    found = heads(points, frame(made.heads()))
    assert found is not None
    own = points[(points.layer == 3) & (points["head"] == 5) & (points.series == "eigenvalue")]
    largest = sorted((math.hypot(x, y) for x, y in zip(own.x, own.y, strict=True)), reverse=True)[:4]
    x, y = found.heads[0, "query_key", 3, 5]["eigenvalue"]
    assert sorted(map(math.hypot, x, y), reverse=True) == pytest.approx(largest, rel=0.01)  # type: ignore[arg-type]


@pytest.mark.parametrize("points", [None, made.pictures().iloc[:0], made.pictures().assign(picture="svd")])
def test_no_album_without_pictures(points: pd.DataFrame | None) -> None:
    assert heads(points, frame(made.heads())) is None
    assert 'class="weighed"' not in a_page(made.weighed(), points)


def test_maps_without_bounds_end_at_nineteen_heads_in_twenty() -> None:
    rows = [r for at in range(40) for r in made.head_rows(1, at, 1000.0 if at == 7 else 1.0, 1.0)]
    trace, frobenius, share = maps(frame(rows), "query_key")
    assert (figure_of(trace).data[0].zmin, figure_of(trace).data[0].zmax) == (-1.0, 1.0)
    assert figure_of(trace).data[0].colorbar.ticktext == ("−1", "0", "≥ 1")
    assert figure_of(frobenius).data[0].colorbar.ticktext[-1] == "1"
    assert (figure_of(share).data[0].zmin, figure_of(share).data[0].zmax) == (0.0, 1.0)


def test_the_vocabulary_stands_beside_hidden_states_with_its_nulls() -> None:
    (grid,) = vocabulary.tables(WORDS, {})
    assert [name for name, _ in grid.groups] == ["Input vocabulary", "Output vocabulary", "Hidden states"]
    assert grid.starts == (0, 3, 6)
    assert len(grid.columns) == 7 == sum(span for _, span in grid.groups)
    lines = dict(grid.lines)
    first, *_, hidden = lines["Mean cosine"]
    assert first is not None
    assert hidden is not None
    assert (first.value, first.null) == ("0.33", "0")
    assert hidden.value == "0.22"  # of the norm's output, not of another stage
    assert lines["Mean cosine between"][:6] == (None,) * 6
    assert "null" in first.words
    (alone,) = vocabulary.tables(frame(made.vocabulary()), {})
    assert [name for name, _ in alone.groups] == ["Input vocabulary"]
    assert "Mean cosine between" not in dict(alone.lines)


def test_what_rounding_leaves_of_a_drift_reads_0() -> None:
    """Of a matrix whose mean was taken away, not of one that has it; what is larger is shown."""
    rows = [row("relative_drift", 8e-9, kind=f"input_vocabulary{form}") for form in ("", "_centred")]
    rows += [row("relative_drift", 0.002, kind="input_vocabulary_without_top")]
    (grid,) = vocabulary.tables(frame(rows), {})
    ((_, entries),) = grid.lines
    assert [entry.value for entry in entries if entry] == ["8e-9", "0", "0.002"]
    assert "8e-09" in entries[1].words  # type: ignore[union-attr]


def test_the_heading_of_several_columns_stands_over_all_of_them() -> None:
    text = a_page(made.weighed(data=True))
    assert (
        '<th class="first" colspan="3" scope="colgroup" style="text-align: center">Input vocabulary' in text
    )
    assert '<th class="number first" colspan="1" scope="colgroup">Hidden states' in text


def test_captions_of_small_panels_are_short_and_stay_in_one_line() -> None:
    beside = [row("softmax_agreement", 0.4, kind="query_key", layer=layer, null=0.3) for layer in range(1, 7)]
    nulls = [replace(r, null=0.1) if r.measure == "spectral_norm" else r for r in made.weighed(data=True)]
    (section, *_) = weight_sections(frame([*nulls, *beside]), None, {}, 512)
    told = {panel.measures[0]: panel.remark for panel in section.small}
    assert told["softmax_agreement"] == "dashed:\N{NO-BREAK SPACE}other\N{NO-BREAK SPACE}heads"
    assert told["spectral_norm"] == "dashed:\N{NO-BREAK SPACE}random\N{NO-BREAK SPACE}W"
    assert not any(" " in remark for remark in told.values())


def test_hidden_states_of_a_pass_are_those_of_the_output_else_of_the_last_layer() -> None:
    for rows, value in ((layered("m"), "0.5"), ([r for r in layered("m") if r.kind == "layer"], "0.497")):
        (grid,) = vocabulary.tables(frame([*made.vocabulary(), *rows]), {})
        entry = dict(grid.lines)["Mean cosine"][-1]
        assert entry is not None
        assert entry.value == value


def test_scatters_are_symmetric_about_the_origin_and_on_one_scale() -> None:
    panels = vocabulary.scatters(made.pictures())
    assert [panel.heading for panel in panels] == [
        "Input vocabulary, as it is", "Input vocabulary, centred",
        "Output vocabulary, as it is", "Output vocabulary, centred",
    ]  # fmt: skip
    for panel in panels:
        for axis in (figure_of(panel).layout.xaxis, figure_of(panel).layout.yaxis):
            assert axis.range[0] == -axis.range[1]
    raw, centred = (figure_of(panel).layout.xaxis.range for panel in panels[2:])
    assert raw == centred
    outside = [int(found[1]) for p in panels if (found := re.search(r", (\d+) of them outside", p.remark))]
    assert 0 < sum(outside) <= 2 * 1000 * (1 - vocabulary.CUT) + 2
    assert vocabulary.scatters(None) == ()


def test_stages_are_joined_in_order_and_edits_stand_apart() -> None:
    panels = {panel.measures[0]: panel for panel in norms.stages(WORDS, {})}
    assert list(panels) == ["mean_cosine_between", "relative_drift", "isoscore", "mean_norm"]
    figure = figure_of(panels["mean_cosine_between"])
    assert list(figure.layout.xaxis.ticktext) == [
        "before", "x̂", "γx̂", "γx̂ + β", "β := 0", "γ := 1",
    ]  # fmt: skip
    joined, edits = [trace for trace in figure.data if trace.name == "m"]
    assert list(joined.y) == [0.42, 0.4, 0.55, 0.2]
    assert (joined.mode, edits.mode, list(edits.y)) == ("lines+markers", "markers", [0.55, 0.25])
    assert norms.stages(frame(made.norm()), {}) == ()
    other = [
        row("mean_cosine", 0.1, kind="norm_from_another_checkpoint"),
        row("mean_cosine", 0.2, kind="norm_before"),
    ]
    (panel,) = norms.stages(frame(other), {})
    assert list(figure_of(panel).layout.xaxis.ticktext) == ["before", "from<br>another<br>checkpoint"]


def test_the_page_has_the_sections_of_weights_before_those_of_data() -> None:
    assert sections(a_page(made.weighed()))[:3] == ["query_key", "vocabulary", "norm"]
    both = sections(a_page([*made.weighed(), *whole("m"), *attended()]))
    assert both[:5] == ["query_key", "vocabulary", "norm", "directions", "drift"]
    assert "query_key" not in sections(a_page(whole("m")))


@pytest.mark.parametrize(
    ("rows", "there"),
    [(made.heads(), ["query_key"]), (made.vocabulary(), ["vocabulary"]), (made.norm(), ["norm"])],
)
def test_parts_that_are_missing_are_left_out(rows: list[Row], there: list[str]) -> None:
    text = a_page(rows, made.pictures() if there == ["query_key"] else None)
    assert [name for name in sections(text) if name not in ("table", "provenance", "notes")] == there


def test_undefined_weights_make_no_section_but_a_note() -> None:
    rows = [replace(r, value=math.nan, null=math.nan, note="the weights hold NaN") for r in made.heads(1, 2)]
    text = a_page(rows)
    assert "query_key" not in sections(text)
    assert "the weights hold NaN" in text.partition('id="notes"')[2]


def test_one_head_that_is_nan_leaves_the_others() -> None:
    rows = [r for head in range(4) for r in made.head_rows(1, head, 1.0, 0.5)]
    rows = [replace(r, value=math.nan, note="not finite") if r.head == 2 else r for r in rows]
    (panel,) = planes(frame(rows), 512)
    assert sum(len(trace.x) for trace in figure_of(panel).data[:-1]) == 3
    assert "the weights decide where 3 of 3 heads would look" in headline(frame(rows))


def test_regimes_and_p_are_no_remarks() -> None:
    text = a_page(made.weighed(data=True))
    assert 'id="notes"' not in text
    assert text.count("regime: late") > 3  # in the table


def test_every_colour_of_the_sections_has_its_pair() -> None:
    points = made.pictures(data=True)
    text = page(made.a_weights_run(), WORDS, {}, points)
    dark = json.loads(re.findall(r'id="dark">(.*?)</script>', text)[0])
    figures = re.findall(r'<script type="application/json">(.*?)</script>', text, flags=re.DOTALL)
    used = {colour for figure in figures for colour in re.findall(r'"(#[0-9a-f]{6})"', figure)}
    assert used
    assert used <= set(dark)
    sections = weight_sections(WORDS, points, {}, 512)
    pairs = [pair for section in sections for panel in section.panels for pair in panel.chart.colours]
    assert len({light for light, _ in pairs}) == len(set(pairs))  # no colour is the first of two pairs
    assert MODELS[0] in pairs
