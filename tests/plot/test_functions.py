"""The functions of a notebook: right marks from planted rows, on axes that are given, else one sentence."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from isoscope import plot
from isoscope.errors import IsoscopeError
from isoscope.show.colours import SOFT
from tests.plot.made import HOSTILE, LOOKS, clouds
from tests.show import made, made_training, made_weights
from tests.typed import frame

MEASURE = "mean_cosine_between"


@pytest.fixture(autouse=True)
def ax() -> Iterator[Axes]:
    yield pyplot.figure(layout="constrained").subplots()
    pyplot.close("all")


def lines(ax: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in ax.lines}


def test_layers_have_a_point_each_a_bar_where_there_is_an_interval_and_the_null(ax: Axes) -> None:
    values = [0.1, 0.4, 0.2, 0.3]
    rows = [made.row(MEASURE, v, layer=i, half=0.05 if i != 1 else None) for i, v in enumerate(values)]
    found = plot.layers(frame(rows), MEASURE, ax=ax)
    assert found is ax
    drawn = lines(ax)
    assert set(drawn) == {"m", "null"}
    np.testing.assert_allclose(drawn["m"].get_ydata(), values)
    assert list(drawn["m"].get_xdata()) == [0, 1, 2, 3]
    (bars,) = ax.collections
    ends = [path.vertices[:, 1] for path in bars.get_paths()]  # type: ignore[attr-defined]
    np.testing.assert_allclose(ends, [(0.05, 0.15), (0.15, 0.25), (0.25, 0.35)])
    assert set(drawn["null"].get_ydata()) == {0.0}
    assert to_hex(drawn["null"].get_color()) == SOFT[0]
    low, high = ax.get_ylim()
    assert low < 0 < 0.4 < high
    assert (ax.get_xlabel(), ax.get_title(loc="left")) == ("layer", "Mean cosine between")


def test_a_shallow_model_is_not_joined_to_the_output(ax: Axes) -> None:
    rows = [*made.layered("deep", depth=5), *made.layered("shallow", depth=2)]
    plot.layers(frame(rows), MEASURE, ax=ax)
    drawn = lines(ax)
    assert np.isnan(drawn["shallow"].get_ydata()).sum() == 1
    assert not np.isnan(drawn["deep"].get_ydata()).any()
    assert [tick.get_text() for tick in ax.get_xticklabels()][-1] == "output"
    assert drawn["deep"].get_color() != drawn["shallow"].get_color()


def test_one_layer_is_a_dot_beside_its_null(ax: Axes) -> None:
    plot.layers(frame(made.clouds()), MEASURE, ax=ax)
    assert list(lines(ax)["vectors.npy"].get_xdata()) == pytest.approx([0.31])
    assert len(lines(ax)["null"].get_xdata()) == 1 and lines(ax)["null"].get_marker() == "|"
    assert len(ax.collections) == 1


def test_measures_made_to_be_compared_share_axes(ax: Axes) -> None:
    plot.layers(frame(made.attended()), ["sink_mass", "sink_mass_without_drift"], ax=ax)
    assert set(lines(ax)) == {"as it is", "without the mean query", "null"}


def test_names_in_the_key_are_plain_and_it_stands_beside_the_axes(ax: Axes) -> None:
    plot.layers(frame([*made.layered(HOSTILE, depth=2), *made.layered("b", depth=2)]), ax=ax)
    legend = ax.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert names[0] == r" _a\$b_c\$<script>x</script>/ %s"
    ax.figure.canvas.draw()
    assert not legend.get_window_extent().overlaps(ax.get_window_extent())


def test_steps_have_a_line_a_layer_with_gaps_alarms_and_null(ax: Axes) -> None:
    rows = made_training.watched(LOOKS, broken_from=64)
    plot.steps(rows, MEASURE, ax=ax)
    drawn = lines(ax)
    assert set(drawn) == {"layer 0", "layer 1", "layer 2", "layer 3", "output", "null"}
    assert len(drawn["layer 1"].get_ydata()) == len(LOOKS)
    assert np.isnan(drawn["layer 1"].get_ydata())[-1]
    assert not np.isnan(drawn["layer 0"].get_ydata()).any()
    assert len(ax.collections) == 5  # an interval a line
    both = rows.assign(model="other")
    with pytest.raises(IsoscopeError, match="these rows are of 2 models"):
        plot.steps(pd.concat([rows, both]), MEASURE, ax=ax)


def test_a_layer_has_one_colour_whatever_the_measure() -> None:
    rows = made_training.watched(LOOKS)
    first, second = (plot.steps(rows, m) for m in (MEASURE, "normalised_entropy"))
    for layer in (1, 2, 3):
        name = f"layer {layer}"
        assert lines(first)[name].get_color() == lines(second)[name].get_color()


def test_layers_by_steps_has_every_cell(ax: Axes) -> None:
    rows = made_training.watched(LOOKS, broken_from=64)
    (chart,) = plot.figures(rows[rows.measure == MEASURE])["layers-by-steps"].charts
    plot.draw(chart, ax)
    (mesh,) = ax.collections
    cells: Any = mesh.get_array()
    assert cells.shape == (5, len(LOOKS))
    assert cells.mask.sum() == 4
    at = rows[(rows.measure == MEASURE) & (rows.layer == 2) & (rows.step == 16)].value.iloc[0]
    assert cells[2, LOOKS.index(16)] == pytest.approx(at)
    assert len(ax.figure.axes) == 2  # with its bar of colours
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first layer on top


def test_a_map_of_heads_has_every_cell(ax: Axes) -> None:
    rows = [*made.attended(heads=3, depth=2)]
    rows[-1] = made.row("query_key_cosine", math.nan, kind="attention", layer=2, head=2)
    table = frame(rows)
    table.loc[(table.measure == "drift_share") & (table.layer == 2) & (table["head"] == 1), "value"] = (
        math.nan
    )
    plot.heads(table, "drift_share", ax=ax)
    cells: Any = ax.collections[0].get_array()
    assert cells.shape == (2, 3)
    assert cells.mask.tolist() == [[False] * 3, [False, True, False]]
    assert cells[0, 2] == pytest.approx(1 / 4 + 0.02)
    with pytest.raises(IsoscopeError, match="no kind of attention in these rows is called 'cross_attention'"):
        plot.heads(table, "drift_share", kind="cross_attention", ax=ax)


def test_a_large_map_is_a_picture(ax: Axes) -> None:
    rows = [
        made.row("sink_mass", 0.1, kind="attention", layer=i, head=j) for i in range(80) for j in range(64)
    ]
    plot.heads(frame(rows), ax=ax)
    assert ax.collections[0].get_rasterized()


def test_the_plane_has_every_head_in_its_regime(ax: Axes) -> None:
    rows = frame(made_weights.heads(3, 4))
    plot.draw(plot.figures(rows)["plane"].charts[0], ax)
    traces = rows[(rows.measure == "trace") & rows["head"].notna()]
    points = [line for line in ax.lines if line.get_marker() not in ("None", "", None)]
    points = [line for line in points if np.isfinite(line.get_xdata()).all()]  # without the ring of the page
    assert sum(len(line.get_xdata()) for line in points) == len(traces)  # type: ignore[arg-type]
    x = np.concatenate([np.asarray(line.get_xdata(), float) for line in points])
    np.testing.assert_allclose(np.sort(x), np.sort(np.arcsinh(traces.value)))
    assert "plane" not in plot.figures(rows[rows.measure == "trace"])


def test_clouds_are_of_the_head_that_lies_furthest_out_or_of_the_one_asked_for(ax: Axes) -> None:
    points = clouds(size=7)
    plot.clouds(points, ax=ax)
    assert ax.get_title(loc="left") == "layer 2 head 1"
    assert len(lines(ax)["queries"].get_xdata()) == len(lines(ax)["keys"].get_xdata()) == 7
    one = plot.clouds(points, 1, 0, on="centred")
    assert one.get_title(loc="left") == "layer 1 head 0"
    with pytest.raises(IsoscopeError, match=r"no head 9 of layer 1 is among these points; .* 1\.0, 1\.1"):
        plot.clouds(points, 1, 9, ax=ax)
    with pytest.raises(IsoscopeError, match="no kind of axes is called 'shard'; did you mean 'shared'"):
        plot.clouds(points, on="shard", ax=ax)
    with pytest.raises(IsoscopeError, match="hold no queries and keys"):
        plot.clouds(points.iloc[:0], ax=ax)


def test_scatter_has_a_dot_a_layer_and_the_first_is_hollow(ax: Axes) -> None:
    plot.draw(plot.figures(frame(made.compared()))["comparison"].charts[0], ax)
    assert len(lines(ax)["a"].get_xdata()) == len(lines(ax)["b"].get_xdata()) == 8
    white = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert sum(len(line.get_xdata()) for line in white) == 2  # type: ignore[arg-type]


def test_spectra_are_of_the_head_asked_for(ax: Axes) -> None:
    points = made_weights.pictures(2, 3, data=True)
    plot.eigenvalues(points, 2, 1, ax=ax)
    assert len(lines(ax)["this head"].get_xdata()) == 16
    assert len(lines(ax)["the layer’s other heads"].get_xdata()) == 32
    assert set(lines(plot.propagation(points, 1, 2))) == {"W of this head", "random W"}
    assert {"measured", "even"} <= set(lines(plot.propagation(points, 1, 2, measured=True)))
    with pytest.raises(IsoscopeError, match="no head 7 of layer 1"):
        plot.eigenvalues(points, 1, 7, ax=ax)


@pytest.mark.parametrize("name", ["layers", "steps", "heads"])
def test_nothing_to_draw_is_one_sentence(name: str, ax: Axes) -> None:
    nan = [
        made.row(MEASURE, math.nan, note="too few"),
        made.row("trace", math.nan, kind="query_key", head=0, layer=1),
    ]
    for rows in (frame([]), frame(nan)):
        with pytest.raises(IsoscopeError, match="nothing to draw") as told:
            getattr(plot, name)(rows, ax=ax)
        assert str(told.value).count(".") <= 2
    with pytest.raises(IsoscopeError, match=r"drawn from rows, as `\.frame\(\)` gives them; got dict"):
        getattr(plot, name)({}, ax=ax)


def test_the_reason_and_a_measure_that_is_not_there_are_told(ax: Axes) -> None:
    rows = frame([made.row(MEASURE, math.nan, note="too few"), made.row("drift", 1.0)])
    with pytest.raises(IsoscopeError, match=r"has no value at sites in these rows \(too few\)"):
        plot.layers(rows, MEASURE, ax=ax)
    with pytest.raises(IsoscopeError, match="is called 'drif'; did you mean 'drift'"):
        plot.layers(rows, "drif", ax=ax)
    with pytest.raises(IsoscopeError, match="nothing to draw along steps"):
        plot.steps(rows, "drift", ax=ax)


def test_every_public_name_is_there_and_stays_what_it_is() -> None:
    first = {name: getattr(plot, name) for name in plot.__all__}
    assert all(callable(one) for one in first.values())
    assert {name: getattr(plot, name) for name in plot.__all__} == first  # no module took its place
    assert dir(plot) == sorted(plot.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'pie'"):
        _ = plot.pie  # type: ignore[attr-defined]


def test_matplotlib_is_imported_when_something_is_drawn_and_not_before() -> None:
    modules = "isoscope.plot, isoscope.cli.figure, isoscope.kinds.report, isoscope.show.page.printed"
    code = f"import {modules}, sys; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(told.stdout.split())
    assert "isoscope.show.page.printed" in loaded  # the look can see
    assert not loaded & {"matplotlib", "torch"}


def test_the_loss_is_of_no_layer(ax: Axes) -> None:
    plot.steps(made_training.watched(LOOKS), "loss", ax=ax)
    assert not any(name.startswith("layer") for name in lines(ax))
    assert len(ax.lines[0].get_xdata()) == len(LOOKS)  # type: ignore[arg-type]
