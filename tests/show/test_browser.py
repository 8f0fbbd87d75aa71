"""The page in a browser: drawn, silent, alone, sortable, and readable in the dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from isoscope.results.row import Row, frame
from isoscope.show.colours import AMOUNT, MEASURES
from isoscope.show.page.page import page
from tests.show.browser import Opened, brightness
from tests.show.made import a_run, attended, clouds, compared, layered, part_rows, row, trained, whole
from tests.show.test_clouds import pictures
from tests.tiers import nightly

HOSTILE = [
    row("mean_cosine_between", 0.1 * i, half=0.01, layer=i, model="</script><b>", note="%{x}")
    for i in range(3)
]
RUNS = {
    "layers": whole(),
    "steps": trained(),
    "cloud": clouds(),
    "models": layered("a") + layered("b", 0.5, depth=7),
    "both": trained("a") + trained("b"),
    "hostile": HOSTILE,
    "compared": compared(),
    "attention": whole("m") + attended(heads=3) + attended(heads=3, kind="cross_attention"),
    "heads": attended(heads=32, depth=32),
}


def write(folder: Path, rows: list[Row], points: pd.DataFrame | None = None) -> Path:
    file = folder / "report.html"
    file.write_text(page(a_run(), frame(rows), {"unit": {"notes": ["a note"]}}, points), encoding="utf-8")
    return file


ALWAYS = ("steps", "cloud", "hostile", "attention")  # of every kind, test_every_kind opens a page


@pytest.mark.parametrize("name", [*ALWAYS, *nightly(*(name for name in RUNS if name not in ALWAYS))])
def test_every_figure_is_drawn_and_nothing_else_happens(browser: Any, tmp_path: Path, name: str) -> None:
    file = write(tmp_path, RUNS[name])
    opened = Opened(browser, file)
    opened.unfold()
    assert opened.drawn() == opened.count(".plot") > 0
    assert opened.complaints == []
    assert opened.asked == [file.as_uri()]
    opened.context.close()


def test_a_script_that_is_not_ours_is_refused(browser: Any, tmp_path: Path) -> None:
    file = write(tmp_path, clouds())
    text = file.read_text(encoding="utf-8").replace("</main>", "<script>window.bad = 1</script></main>")
    file.write_text(text, encoding="utf-8")
    opened = Opened(browser, file)
    assert opened.page.evaluate("window.bad") is None
    assert "Content Security Policy" in opened.complaints[0]
    opened.context.close()


def test_the_table_sorts_both_ways_with_the_undefined_last(browser: Any, tmp_path: Path) -> None:
    rows = [row("drift", value, layer=i) for i, value in enumerate((9.5, float("nan"), 10.25, -2.0))]
    opened = Opened(browser, write(tmp_path, rows))
    heading = opened.page.get_by_role("button", name="value")
    heading.click()
    assert opened.column("value") == ["−2", "9.5", "10.2", "–"]
    heading.click()
    assert opened.column("value") == ["10.2", "9.5", "−2", "–"]
    assert opened.page.locator("th[aria-sort=descending]").inner_text().startswith("value")
    opened.page.get_by_role("button", name="site").click()
    assert opened.column("site") == ["layer 0", "layer 1", "layer 2", "layer 3"]
    opened.context.close()


def test_the_table_is_filtered_copied_and_saved(browser: Any, tmp_path: Path) -> None:
    rows = [row("drift", 0.1 + i / 3, layer=i, model='=cmd|"x"', note="a, b") for i in range(12)]
    rows += [row("mean_norm", 1.0, layer=1, model="plain")]
    opened = Opened(browser, write(tmp_path, rows), permissions=["clipboard-read", "clipboard-write"])
    tools = opened.page.locator(".tools")
    tools.get_by_label("Filter").fill("LAYER 1 drift")
    shown = opened.page.locator("table.rows tbody tr:visible")
    assert shown.count() == 3 and tools.locator("output").inner_text() == "3 of 13 rows"  # 1, 10, 11
    tools.get_by_role("button", name="Copy").click()
    copied = opened.page.evaluate("navigator.clipboard.readText()").split("\n")
    assert len(copied) == 4 and len(set(map(lambda line: line.count("\t"), copied))) == 1
    with opened.page.expect_download() as waited:
        tools.get_by_role("button", name="CSV").click()
    saved = pd.read_csv(waited.value.path())
    assert list(saved["value"]) == [0.1 + i / 3 for i in (1, 10, 11)]
    assert set(saved["model"]) == {'\'=cmd|"x"'} and set(saved["note"]) == {"a, b"}
    tools.get_by_label("Filter").fill("nothing such")
    assert shown.count() == 0
    tools.get_by_label("Filter").fill("")
    assert shown.count() == 13
    assert opened.complaints == []
    opened.context.close()


def test_figures_follow_a_dark_screen_and_back(browser: Any, tmp_path: Path) -> None:
    opened = Opened(browser, write(tmp_path, trained()), color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    text = "getComputedStyle(document.querySelector('.plot .xtick text')).fill"
    curve = "[...document.querySelectorAll('.plot .js-line')].map((l) => getComputedStyle(l).stroke)"
    assert brightness(opened.page.evaluate(paper)) < 40 < 120 < brightness(opened.page.evaluate(text))
    dark = opened.page.evaluate(curve)
    opened.page.emulate_media(color_scheme="light")
    opened.page.wait_for_function(f"(before) => JSON.stringify({curve}) !== JSON.stringify(before)", arg=dark)
    assert brightness(opened.page.evaluate(paper)) > 240 > 140 > brightness(opened.page.evaluate(text))
    opened.context.close()


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["models", "cloud", "hostile", "compared", "attention"])
def test_a_phone_never_scrolls_sideways(browser: Any, tmp_path: Path, name: str) -> None:
    opened = Opened(browser, write(tmp_path, RUNS[name]), viewport={"width": 390, "height": 800})
    opened.unfold()
    assert opened.page.evaluate("document.documentElement.scrollWidth") == 390
    opened.context.close()


def test_hover_shows_the_number_with_its_interval_n_and_note(browser: Any, tmp_path: Path) -> None:
    opened = Opened(browser, write(tmp_path, HOSTILE))
    opened.page.evaluate(
        "Plotly.Fx.hover(document.querySelector('.plot'), [{curveNumber: 1, pointNumber: 2}])"
    )
    text = opened.page.locator(".hovertext").first.text_content()
    for part in ("0.2", "95 % interval 0.19 to 0.21", "null 0", "n 16,384", "</script><b>", "%{x}"):
        assert part in text
    opened.context.close()


def test_a_folded_section_says_what_it_found_and_is_drawn_to_its_width_when_opened(
    browser: Any, tmp_path: Path
) -> None:
    opened = Opened(browser, write(tmp_path, whole()))
    assert opened.drawn("#tokens") == 0
    finding = opened.page.locator("#tokens .finding")
    assert finding.is_visible()
    assert finding.inner_text().startswith("Rare tokens drift further than frequent tokens in layers 0–6")
    opened.page.get_by_role("navigation").get_by_text("Tokens").click()
    opened.settle()
    assert opened.drawn("#tokens") == opened.count("#tokens .plot") == 4
    widths = "all => all.map((n) => n.querySelector('svg').getBoundingClientRect().width / n.clientWidth)"
    assert opened.page.locator("#tokens .plot").evaluate_all(widths) == [1, 1, 1, 1]
    opened.context.close()


def test_a_link_from_outside_opens_its_section_and_paper_has_them_all(browser: Any, tmp_path: Path) -> None:
    file = write(tmp_path, whole())
    opened = Opened(browser, file)
    opened.page.goto(f"{file.as_uri()}#layers")
    opened.page.reload()
    opened.settle()
    assert opened.count("details.section[open]") == 1
    folded = opened.count("details.section:not([open])")
    opened.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert opened.drawn() == opened.count(".plot")
    opened.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert opened.count("details.section:not([open])") == folded == 5
    opened.context.close()


def test_nothing_is_folded_where_there_is_nothing_else(browser: Any, tmp_path: Path) -> None:
    rows = [r for i in range(3) for r in part_rows(0.1, layer=i) if r.measure.startswith("cka")]
    opened = Opened(browser, write(tmp_path, rows))
    assert opened.count("details.section") == 0
    assert opened.drawn("section#layers") == 1
    opened.context.close()


@pytest.mark.nightly
def test_a_map_follows_a_dark_screen_and_tells_its_cells(browser: Any, tmp_path: Path) -> None:
    file = write(tmp_path, attended(heads=5))
    seen = {}
    for scheme in ("light", "dark"):
        opened = Opened(browser, file, color_scheme=scheme)
        node = "document.querySelectorAll('#attention .maps .plot')[1]"
        seen[scheme] = opened.page.evaluate(f"() => {node}._fullData[0].colorscale.map((stop) => stop[1])")
        opened.page.evaluate(f"Plotly.Fx.hover({node}, {{xval: 2, yval: 2}})")
        text = opened.page.locator(".hovertext").first.text_content()
        for part in ("0.3", "95 % interval 0.299 to 0.301", "attention 2 head 2 of m"):
            assert part in text
        opened.context.close()
    assert seen["light"][0] == AMOUNT[0][0]
    assert seen["dark"] == [pair[1] for pair in AMOUNT]


PICKED = ".clouds [role=status]"
SHOWN = """() => [...document.querySelectorAll('.clouds .plot')].map(
    (n) => [n._fullData[0].x.length, n._fullData[1].y[0], n.ariaLabel])"""


def a_gallery(folder: Path) -> tuple[Path, pd.DataFrame]:
    """Two steps of a model with self-attention of three heads and cross-attention of two, and their maps."""
    units = [f"step {step:06d}" for step in (0, 30)]
    points = pd.concat(
        [pictures(unit, heads=3, far=at) for at, unit in enumerate(units)]
        + [pictures(unit, kind="cross_attention", layers=2) for unit in units]
    )
    rows = [*whole("m"), *attended(heads=3, depth=3), *attended(heads=2, depth=2, kind="cross_attention")]
    return write(folder, rows, points), points


def test_a_head_is_picked_from_lists_by_keyboard(browser: Any, tmp_path: Path) -> None:
    file, points = a_gallery(tmp_path)
    opened = Opened(browser, file)
    opened.unfold()
    step, layer, head = (opened.page.get_by_label(name, exact=True) for name in ("step", "layer", "head"))
    status = opened.page.locator(PICKED)
    assert status.inner_text() == "step 30, self-attention 3, head 2: 12 queries and 12 keys"
    head.focus()
    opened.page.keyboard.press("ArrowUp")
    assert status.inner_text() == "step 30, self-attention 3, head 1: 12 queries and 12 keys"
    layer.select_option(label="cross-attention 2")
    assert head.locator("option").all_inner_texts() == ["0", "1"]
    step.select_option(label="0")
    assert status.inner_text() == "step 0, cross-attention 2, head 1: 12 queries and 12 keys"
    own = points[
        (points.unit == "step 000000") & (points.kind == "cross_attention") & (points.layer == 2)
        & (points["head"] == 1) & (points.series == "key")
    ]  # fmt: skip
    shown = opened.page.evaluate(SHOWN)
    for (count, first, label), name in zip(shown, ("shared", "centred", "random"), strict=True):
        assert count == 12
        assert first == pytest.approx(float(own[own.picture == name].y.iloc[0]), rel=5e-3)
        assert label.startswith(
            f"{name.capitalize()} axes, step 0, cross-attention 2, head 1. The mean query is"
        )
        assert label.endswith("75 % of the spread" if name == "centred" else "75 % of the energy")
    layer.select_option(label="self-attention 3")  # the head stays where the layer has it
    assert head.input_value() == "1"
    assert opened.complaints == []
    opened.context.close()


def test_a_cell_of_the_map_picks_its_head(browser: Any, tmp_path: Path) -> None:
    opened = Opened(browser, a_gallery(tmp_path)[0])
    opened.unfold()
    status = opened.page.locator(PICKED)
    for at, (layer, head), kind in ((0, (1, 2), "self-attention"), (1, (2, 0), "cross-attention")):
        node = opened.page.locator("#queries .maps .plot").nth(at)
        node.scroll_into_view_if_needed()
        axes = "n => [n._fullLayout.xaxis.c2p({0}) + n._fullLayout.xaxis._offset, "
        axes += "n._fullLayout.yaxis.c2p({1}) + n._fullLayout.yaxis._offset]"
        x, y = node.evaluate(axes.format(head, layer))
        node.hover(position={"x": x, "y": y})
        opened.page.wait_for_selector(".hovertext")
        node.click(position={"x": x, "y": y})
        opened.page.wait_for_function(
            f"() => document.querySelector('{PICKED}').innerText.includes('{kind} {layer}, head {head}')"
        )
        assert opened.page.get_by_label("head", exact=True).input_value() == str(head)
    assert status.inner_text().startswith("step 30")
    opened.context.close()


@pytest.mark.nightly
def test_a_cell_without_a_picture_says_so(browser: Any, tmp_path: Path) -> None:
    opened = Opened(browser, write(tmp_path, attended(heads=5), pictures(heads=2)))
    opened.unfold()
    before = opened.page.get_by_label("head", exact=True).input_value()
    cell = "{detail: {x: 4, y: 1, data: {meta: {kind: 'attention'}}}}"
    opened.page.evaluate(
        f"document.querySelector('#queries .maps .plot').dispatchEvent(new CustomEvent('cell', {cell}))"
    )
    assert opened.page.locator(PICKED).inner_text() == "layer 1, head 4 has no picture"
    assert opened.page.get_by_label("head", exact=True).input_value() == before != "4"
    assert not opened.page.get_by_label("unit", exact=True).is_visible()
    opened.context.close()


@pytest.mark.nightly
def test_clouds_follow_a_dark_screen_keep_their_aspect_and_fit_a_phone(browser: Any, tmp_path: Path) -> None:
    file, _ = a_gallery(tmp_path)
    scale = """() => [...document.querySelectorAll('.clouds .plot')].map((n) => {
        const [x, y] = [n._fullLayout.xaxis, n._fullLayout.yaxis];
        return (x.c2p(1) - x.c2p(0)) / (y.c2p(0) - y.c2p(1)); })"""
    colour = """() => document.querySelector('.clouds .plot')._fullData
        .slice(0, 2).map((one) => one.marker.color)"""
    for scheme, at in (("light", 0), ("dark", 1)):
        opened = Opened(browser, file, color_scheme=scheme, viewport={"width": 390, "height": 800})
        opened.unfold()
        assert opened.page.evaluate(colour) == [pair[at] for pair in MEASURES[:2]]
        assert opened.page.evaluate(scale) == pytest.approx([1, 1, 1], abs=1e-6)
        assert opened.page.evaluate("document.documentElement.scrollWidth") == 390
        opened.context.close()
