"""The page of a sweep in a browser: both themes, the switch of the axis, steps that are played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from isoscope.kinds.sweep.page import content_of
from tests.show.browser import Opened
from tests.show.made_sweep import STEPS, a_sweep, finding
from tests.tiers import nightly

RANGE = "document.querySelector('#directions .plot').layout.xaxis.range"
X = "document.querySelector('#directions .plot').data.find((one) => one.type === 'heatmap').x"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = a_sweep(tmp_path, findings={8: [finding(8)]}, failed={128: "gone"}, weights=True)
    made = tmp_path / "report.html"
    made.write_text(content_of(folder).page(), encoding="utf-8")
    return made


@pytest.mark.parametrize("scheme", ["dark", *nightly("light")])
def test_it_is_drawn_without_complaint(browser: Any, file: Path, scheme: str) -> None:
    opened = Opened(browser, file, color_scheme=scheme)
    opened.unfold()
    assert opened.complaints == []
    assert opened.count(".plot.js-plotly-plot") == opened.count(".plot")


@pytest.mark.nightly
def test_steps_stand_on_either_axis(browser: Any, file: Path) -> None:
    opened = Opened(browser, file)
    before, at = opened.page.evaluate(RANGE), opened.page.evaluate(X)
    assert before[1] < 4
    opened.page.check("input[value=linear]")
    assert opened.page.evaluate(RANGE)[1] > 1000
    shown = [step for step in STEPS if step != 128]
    assert opened.page.evaluate(X) == pytest.approx(shown, rel=1e-3, abs=1e-3)
    opened.page.check("input[value=log]")
    assert opened.page.evaluate(RANGE) == before and opened.page.evaluate(X) == at
    assert opened.complaints == []


def test_steps_are_played_and_slid(browser: Any, file: Path) -> None:
    opened = Opened(browser, file)
    opened.unfold()
    page = opened.page
    last = str(len(STEPS) - 2)  # one could not be measured
    assert page.input_value(".player input[type=range]") == last
    page.click(".player button")
    assert page.inner_text(".player button") == "Pause"
    page.locator(".player output", has_text="step 2").wait_for()
    page.click(".player button")
    assert page.inner_text(".player button") == "Play"
    assert 2 <= int(page.input_value(".player input[type=range]")) < int(last)
    page.fill(".player input[type=range]", "4")
    assert "step 8, " in page.inner_text(".clouds [role=status]")
    spans = "[...document.querySelectorAll('.clouds .plot')].map((one) => one.layout.xaxis.range[1])"
    own = page.evaluate(spans)
    page.check(".player input[type=checkbox]")
    assert all(all_ > mine for all_, mine in zip(page.evaluate(spans), own, strict=True))
    page.select_option(".clouds select[name=unit]", "0")
    assert page.input_value(".player input[type=range]") == "0"
    assert opened.complaints == []
