"""The page of a training run in a browser: drawn in both themes, told on hover, heads picked by layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from isoscope.show.colours import ALARM
from isoscope.show.page.page import page
from tests.show.browser import Opened
from tests.show.made_training import a_training, alarm, facts, watched
from tests.tiers import nightly

STEPS = [0, 1, 4, 25, 100, 200, 400]
HOVER = ".hoverlayer text"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "report.html"
    rows = watched(STEPS, layers=7, heads=32, broken_from=400)
    made.write_text(page(a_training(), rows, facts(STEPS, {25: [alarm(25)]})), encoding="utf-8")
    return made


def pointed(opened: Opened, selector: str, x: float, y: float) -> str:
    """What is told when the pointer rests there, in parts of the figure's size."""
    node = opened.page.locator(selector).first
    node.scroll_into_view_if_needed()
    box = node.bounding_box()
    opened.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
    opened.page.wait_for_selector(HOVER)
    return " ".join(opened.page.locator(HOVER).all_text_contents())


@pytest.mark.parametrize("scheme", ["dark", *nightly("light")])
def test_it_is_drawn_without_complaint(browser: Any, file: Path, scheme: str) -> None:
    opened = Opened(browser, file, color_scheme=scheme)
    opened.unfold()
    assert opened.complaints == []
    assert opened.count(".plot.js-plotly-plot") > 6
    colours = opened.page.locator("#directions .annotation-text").evaluate_all(
        "all => all.map((one) => getComputedStyle(one).fill)"
    )
    wanted = ALARM[scheme == "dark"]
    red, green, blue = (int(wanted[at : at + 2], 16) for at in (1, 3, 5))
    assert set(colours) == {f"rgb({red}, {green}, {blue})"}


def test_maps_and_alarms_tell_their_step(browser: Any, file: Path) -> None:
    opened = Opened(browser, file)
    told = pointed(opened, "#directions .plot", 0.5, 0.8)
    assert "step" in told and any(f"step {step}" in told for step in STEPS)
    opened.page.mouse.move(0, 0)
    told = pointed(opened, "#directions .annotation-text", 0.5, 0.5)
    assert "rank_collapse at step 25 at layer.2" in told


def test_a_list_picks_the_layers_whose_heads_are_shown(browser: Any, file: Path) -> None:
    opened = Opened(browser, file)
    lists = opened.page.locator("#attention .groups select")
    assert lists.locator("option").all_text_contents() == ["1–4", "5–7"]
    assert opened.page.locator("#attention .group:visible").count() == 1
    lists.select_option(index=1)
    opened.settle()
    assert opened.page.locator("#attention .group").evaluate_all("all => all.map((one) => one.hidden)") == [
        True,
        False,
    ]
    assert opened.page.locator("#attention .group:visible .heatmaplayer image").count() >= 1
    assert "layer 6 head" in pointed(opened, "#attention .group:visible .plot", 0.4, 0.5)
    assert opened.complaints == []
