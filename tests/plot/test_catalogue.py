"""Every kind of run has its figures: drawn without a warning, in the width that was asked, the same twice."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from PIL import Image

from isoscope.errors import IsoscopeError
from isoscope.kinds.report import figures
from isoscope.results.run import Run
from isoscope.results.store import RunFolder, open_run, read_run
from isoscope.show.charts import Chart, Series
from isoscope.show.draw.matplotlib.sheet import Offered
from tests.plot.made import HOSTILE, KINDS, folder
from tests.show import made
from tests.tiers import nightly
from tests.typed import frame

NAMED = {
    "measure": ["layers", "heads", "clouds", "directions", "drift-and-norms", "spectrum", "attention"],
    "compare": ["layers", "comparison", "directions"],
    "cloud": ["values", "directions"],
    "weights": ["layers", "heads", "plane", "eigenvalues", "propagation", "vocabulary"],
    "training": ["steps", "layers-by-steps", "layers", "heads", "directions"],
    "sweep": ["steps", "layers-by-steps", "layers", "heads", "clouds"],
    "contrast": ["contrast", "trials"],
    "block": ["attention", "ends", "stages", "passes", "scores"],
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunFolder]:
    path = tmp_path_factory.mktemp("runs")
    return {kind: folder(path, kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_has_its_figures_with_a_line_on_each(kind: str, folders: dict[str, RunFolder]) -> None:
    there = figures(folders[kind])
    assert set(NAMED[kind]) <= {name for name, one in there.items() if not one.alone}
    for name, one in there.items():
        assert name == one.name
        assert one.says
        assert "\n" not in one.says
        assert one.charts


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in NAMED.items() for name in names])
def test_every_figure_is_drawn(kind: str, name: str, folders: dict[str, RunFolder]) -> None:
    figure = figures(folders[kind])[name].draw("single")
    panels = [ax for ax in figure.axes if ax.axison]
    assert panels
    assert all(ax.lines or ax.collections or ax.get_label() == "<colorbar>" for ax in panels)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, names[0]) for kind, names in NAMED.items()]
    + nightly(*((kind, name) for kind, names in NAMED.items() for name in names[1:2])),
)
def test_a_figure_is_the_same_twice(kind: str, name: str, folders: dict[str, RunFolder]) -> None:
    first = figures(folders[kind])[name].bytes("svg", "single")
    again = figures(read_run(folders[kind].path))[name].bytes("svg", "single")
    assert first == again
    assert b"<dc:date>" not in first


@pytest.mark.parametrize("kind", ["pdf", "png"])
def test_other_formats_are_the_same_twice_and_have_no_date(kind: str, folders: dict[str, RunFolder]) -> None:
    one = figures(folders["measure"])["heads"]
    first = one.bytes(kind)
    assert first == one.bytes(kind)
    assert b"CreationDate" not in first
    assert first != one.bytes(kind, "double")  # the look can see a difference


@pytest.mark.parametrize(("width", "inches"), [("single", 3.3), *nightly(("double", 6.9))])
@pytest.mark.parametrize("look", ["paper", "slide"])
def test_a_figure_is_as_wide_as_was_asked(
    width: str, inches: float, look: str, folders: dict[str, RunFolder]
) -> None:
    one = figures(folders["compare"])["layers"]
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ", one.bytes("pdf", width, look))
    assert box is not None
    assert float(box[1]) == pytest.approx(72 * inches, abs=0.01)
    if look == "slide":
        return
    drawn = re.search(rb'<svg [^>]*width="([\d.]+)pt"', one.bytes("svg", width, look))
    assert drawn is not None
    assert float(drawn[1]) == pytest.approx(72 * inches, abs=0.01)
    assert Image.open(io.BytesIO(one.bytes("png", width, look))).width == round(300 * inches)


def test_a_slide_has_larger_type(folders: dict[str, RunFolder]) -> None:
    one = figures(folders["measure"])["layers"]
    sizes = [one.draw("double", look).axes[0].xaxis.label.get_size() for look in ("paper", "slide")]
    assert sizes[1] > 1.3 * sizes[0]


@pytest.mark.parametrize("kind", ["measure", "compare", "training", "weights"])
@pytest.mark.parametrize("width", ["single", *nightly("double")])
def test_the_key_covers_no_panel_and_nothing_is_cut_off(
    kind: str, width: str, folders: dict[str, RunFolder]
) -> None:
    there = figures(folders[kind])
    for name in NAMED[kind][:3]:
        figure = there[name].draw(width)
        figure.draw_without_rendering()
        panels = [ax.get_window_extent() for ax in figure.axes]
        for legend in figure.legends:
            assert not any(legend.get_window_extent().overlaps(panel) for panel in panels), name
        _assert_inside(figure, name)


def _assert_inside(figure: Figure, name: str) -> None:
    whole, room = figure.bbox, 2.0
    texts = [ax.title for ax in figure.axes] + [t for one in figure.legends for t in one.get_texts()]
    texts += [label for ax in figure.axes for label in (ax.xaxis.label, ax.yaxis.label, ax._left_title)]  # type: ignore[attr-defined]
    for text in texts:
        box = text.get_window_extent()
        if text.get_text() and text.get_visible():
            assert box.x0 >= -room, (name, text.get_text())
            assert box.x1 <= whole.x1 + room, (name, text.get_text())
            assert box.y0 >= -room, (name, text.get_text())
            assert box.y1 <= whole.y1 + room, (name, text.get_text())


def test_the_null_is_last_in_the_key_and_models_are_named(folders: dict[str, RunFolder]) -> None:
    figure = figures(folders["compare"])["layers"].draw()
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["a", "b", "null"]


def test_names_are_written_as_they_are(tmp_path: Path) -> None:
    rows = [*made.layered(HOSTILE, depth=3), *made.layered("other", depth=3)]
    run = open_run(
        tmp_path / "run", Run("compare", HOSTILE, {}, {"relative_drift": {"title": "a $x_1$ <b>"}})
    )
    run.write("m", rows, {})
    there = figures(run)
    drawn = there["layers"].bytes("svg").decode()
    assert "_a$b_c$&lt;script&gt;x&lt;/script&gt;/ %s" in drawn  # no formula, no tag, not left out of the key
    assert "<script" not in drawn
    assert "A $x_1$ &lt;b&gt;" in drawn
    assert there["directions"].bytes("pdf").startswith(b"%PDF")


def test_one_layer_and_values_that_are_not_there(tmp_path: Path) -> None:
    run = open_run(tmp_path / "run", made.a_run())
    nan, inf = float("nan"), float("inf")
    run.write("m", [made.row("mean_cosine_between", 0.4, half=0.1), made.row("relative_drift", nan),
                    made.row("mean_norm", inf)], {})  # fmt: skip
    there = figures(run)
    assert set(there) == {"values", "directions", "mean_cosine_between"}
    for one in there.values():
        assert one.bytes("svg")


def test_without_rows_or_values_there_is_no_figure(tmp_path: Path) -> None:
    for kind in ("measure", "contrast", "block", "sweep", "training"):
        run = open_run(tmp_path / kind, Run(kind, "empty", {"reference": "softmax"}, {}))
        assert figures(run) == {}
        run.write("m", frame([made.row("mean_cosine_between", float("nan"), revision="seed 0")]), {})
        if kind not in ("contrast", "block"):
            assert figures(run) == {}
    with pytest.raises(IsoscopeError, match="nothing to draw in nothing"):
        Offered("nothing", "", ()).draw()


def test_a_claim_is_drawn_from_its_charts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    series = [Series("one", [0, 1], [0.1, 0.2], [0.0, 0.1], [0.2, 0.3])]
    chart = Chart("Cosine $1$", "layer", "", series, levels=((0.1, "chance"),))

    class Judged:
        class claim:  # noqa: N801
            name, title = "toy-claim", "Toys are toys"

        class verdict:  # noqa: N801
            word = "as expected"

        @staticmethod
        def charts() -> list[Chart]:
            return [chart]

    monkeypatch.setattr("isoscope.kinds.reproduce.judged", lambda paper, folder: [Judged])
    run = open_run(tmp_path / "run", Run("reproduce", "paper", {"paper": "godey2024"}, {}))
    run.write("toy-claim", frame([made.row("mean_cosine", 0.1)]), {})
    (one,) = figures(run).values()
    assert (one.name, one.says) == ("toy-claim", "toys are toys: as expected")
    (ax,) = one.draw().axes
    assert [text.get_text() for text in ax.texts] == ["chance"]
    assert b"Cosine $1$" in one.bytes("svg")


def test_names_of_width_style_and_format_are_told(folders: dict[str, RunFolder]) -> None:
    one = figures(folders["cloud"])["values"]
    with pytest.raises(IsoscopeError, match="no width is called 'singel'; did you mean 'single'"):
        one.draw("singel")
    with pytest.raises(IsoscopeError, match="no style is called 'slid'; did you mean 'slide'"):
        one.draw("single", "slid")
    with pytest.raises(IsoscopeError, match="no format is called 'jpg'"):
        one.bytes("jpg")
