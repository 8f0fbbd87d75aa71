"""The page of weights in a browser: a head is picked in lists, in the plane or in a map, and all follows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from isoscope.show.figures.weights.planes import AREAS
from isoscope.show.page.page import page
from tests.show import made_weights as made
from tests.show.browser import Opened
from tests.show.made import attended, whole
from tests.show.test_clouds import pictures as clouds
from tests.tiers import nightly
from tests.typed import frame

STATUS = ".weighed [role=status]"
RINGS = """() => [...document.querySelectorAll('.planes .plot')].map(({ data }) => {
    const ring = data[data.length - 1], own = data.find((one) => one.x.includes(ring.x[0]));
    const at = own.x.indexOf(ring.x[0]);
    return [own.y[at] === ring.y[0], ...own.customdata[at]]; })"""
SHOWN = """() => [...document.querySelectorAll('.weighed .plot')].map(
    (n) => [n.data.map((one) => one.x.length), n.ariaLabel])"""

OUTSIDE = """() => { const { data: [{ x, y }], _fullLayout: { xaxis, yaxis } } =
    document.querySelector('.weighed .plot');
    const cut = (value, [low, high]) => value < low || value > high;
    return x.filter((value, i) => cut(value, xaxis.range) || cut(y[i], yaxis.range)).length; }"""


def write(folder: Path, *, data: bool = False) -> Path:
    file = folder / "report.html"
    rows = frame(made.weighed(data=data))
    file.write_text(page(made.a_weights_run(), rows, {}, made.pictures(data=data)), encoding="utf-8")
    return file


@pytest.mark.parametrize("data", [True, *nightly(False)])
def test_every_figure_is_drawn_and_nothing_is_asked_for(browser: Any, tmp_path: Path, data: bool) -> None:
    file = write(tmp_path, data=data)
    opened = Opened(browser, file)
    marks = "svg.main-svg .trace .points path, .scatterlayer .js-line, .heatmaplayer image"
    drawn = opened.page.locator(".plot").evaluate_all(
        f"nodes => nodes.filter((n) => n.querySelector('{marks}')).length"
    )
    assert drawn == opened.count(".plot") > 12
    assert opened.complaints == []
    assert opened.asked == [file.as_uri()]
    opened.context.close()


def test_a_head_picked_from_lists_fills_the_panels_and_is_ringed(browser: Any, tmp_path: Path) -> None:
    opened = Opened(browser, write(tmp_path, data=True))
    layer, head = (opened.page.get_by_label(name, exact=True) for name in ("layer", "head"))
    layer.select_option(label="3")
    head.select_option(label="5")
    assert opened.page.locator(STATUS).inner_text() == "layer 3, head 5"
    assert opened.page.evaluate(RINGS) == [[True, "query_key", 3, 5]] * 2
    spectrum, predicted, measured = opened.page.evaluate(SHOWN)
    assert spectrum[0] == [11 * 16, 16]  # of the layer's other heads, of this one
    assert spectrum[1].startswith("Eigenvalues of W, layer 3, head 5. Of 16 eigenvalues")
    outside = re.search(r" (\d+) of 176 of the other heads lie outside\.$", spectrum[1])
    assert outside and int(outside[1]) == opened.page.evaluate(OUTSIDE) > 0
    assert predicted[0] == [32, 32]
    assert "ρ is highest, 0.62, at 0.98 and lowest, 0.38, at 0.016." in predicted[1]
    assert measured[0] == [32, 0, 2]  # the last is even attention
    assert "times an even one" in measured[1]
    opened.context.close()


def test_a_point_of_the_plane_and_a_cell_of_a_map_pick_their_head(browser: Any, tmp_path: Path) -> None:
    opened = Opened(browser, write(tmp_path))
    click = "(n, detail) => n.dispatchEvent(new CustomEvent('cell', {detail}))"
    plane, trace = (opened.page.locator(f".{where} .plot").first for where in ("planes", "maps"))
    plane.evaluate(click, {"x": 1.2, "y": 0.1, "customdata": ["query_key", 4, 7], "data": {}})
    assert opened.page.locator(STATUS).inner_text() == "layer 4, head 7"
    trace.evaluate(click, {"x": 2, "y": 6, "data": {"meta": {"kind": "query_key"}}})
    assert opened.page.locator(STATUS).inner_text() == "layer 6, head 2"
    assert opened.page.evaluate(RINGS) == [[True, "query_key", 6, 2]]
    plane.evaluate(click, {"x": 0, "y": 0, "customdata": ["query_key", 9, 0], "data": {}})
    assert opened.page.locator(STATUS).inner_text() == "layer 9, head 0 has no picture"
    opened.context.close()


def test_a_real_click_on_the_plane_picks(browser: Any, tmp_path: Path) -> None:
    opened = Opened(browser, write(tmp_path))
    plane = opened.page.locator(".planes .plot").first
    at = """n => { const own = n.data.find((one) => one.name === 'just past the middle');
        const [x, y] = [n._fullLayout.xaxis, n._fullLayout.yaxis], far = own.x.indexOf(Math.max(...own.x));
        return [x.c2p(own.x[far]) + x._offset, y.c2p(own.y[far]) + y._offset]; }"""
    x, y = plane.evaluate(at)
    plane.hover(position={"x": x, "y": y})
    opened.page.wait_for_selector(".hovertext")
    assert "layer 6, head 11" in opened.page.locator(".hovertext").first.text_content()
    plane.click(position={"x": x, "y": y})
    opened.page.wait_for_function(
        f"() => document.querySelector('{STATUS}').innerText === 'layer 6, head 11'"
    )
    opened.context.close()


@pytest.mark.nightly
def test_areas_follow_a_dark_screen_and_a_phone_never_scrolls(browser: Any, tmp_path: Path) -> None:
    file = write(tmp_path, data=True)
    fill = "() => document.querySelector('.planes .plot').layout.shapes.map((one) => one.fillcolor)"
    for at, scheme in enumerate(("light", "dark")):
        opened = Opened(browser, file, color_scheme=scheme, viewport={"width": 390, "height": 800})
        assert AREAS["late"][0][at] in opened.page.evaluate(fill)
        assert opened.page.evaluate("document.documentElement.scrollWidth") == 390
        opened.context.close()


@pytest.mark.nightly
def test_both_albums_live_on_one_page(browser: Any, tmp_path: Path) -> None:
    rows = [*made.weighed(), *whole("m"), *attended(heads=2)]
    file = tmp_path / "report.html"
    points = pd.concat([made.pictures(), clouds()], ignore_index=True)
    file.write_text(page(made.a_weights_run(), frame(rows), {}, points), encoding="utf-8")
    opened = Opened(browser, file)
    opened.unfold()
    opened.page.locator("#clouds-head").select_option(label="0")
    opened.page.locator("#weighed-head").select_option(label="9")
    assert opened.page.locator(".clouds [role=status]").inner_text().startswith("layer 2, head 0")
    assert opened.page.locator(STATUS).inner_text().endswith("head 9")
    assert opened.complaints == []
    opened.context.close()
