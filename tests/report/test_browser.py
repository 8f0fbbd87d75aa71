"""The page in a browser: drawn, silent, alone, sortable, and readable in the dark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isoscope.report.page import page
from isoscope.results.schema import Row, frame
from tests.report.made import a_run, clouds, layered, row, trained

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HOSTILE = [
    row("mean_cosine_between", 0.1 * i, half=0.01, layer=i, model="</script><b>", note="%{x}")
    for i in range(3)
]
RUNS = {
    "layers": layered(),
    "steps": trained(),
    "cloud": clouds(),
    "models": layered("a") + layered("b", 0.5, depth=7),
    "both": trained("a") + trained("b"),
    "hostile": HOSTILE,
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium or Chrome on this machine: the page is not opened in a browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        opened = tool.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield opened
        opened.close()


class Opened:
    """A page opened from disk, with everything it complained of or asked for."""

    def __init__(self, browser: Any, file: Path, **given: Any) -> None:
        self.context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | given))
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_function("document.querySelectorAll('.plot:not(.js-plotly-plot)').length === 0")

    def count(self, selector: str) -> int:
        return int(self.page.locator(selector).count())

    def column(self, name: str) -> list[str]:
        at = "[...document.querySelectorAll('table.rows th')].findIndex((h) => h.innerText.startsWith(name))"
        cells = "[...document.querySelectorAll('table.rows tbody tr')].map((r) => r.cells[at].innerText)"
        return list(self.page.evaluate(f"(name) => {{ const at = {at}; return {cells}; }}", name))


def write(folder: Path, rows: list[Row]) -> Path:
    file = folder / "report.html"
    file.write_text(page(a_run(), frame(rows), {"unit": {"notes": ["a note"]}}), encoding="utf-8")
    return file


@pytest.mark.parametrize("name", RUNS)
def test_every_figure_is_drawn_and_nothing_else_happens(browser: Any, tmp_path: Path, name: str) -> None:
    file = write(tmp_path, RUNS[name])
    opened = Opened(browser, file)
    plots = opened.count(".plot")
    assert plots > 0
    drawn = "nodes => nodes.filter(n => n.querySelector('svg.main-svg .trace .points path')).length"
    assert opened.page.locator(".plot").evaluate_all(drawn) == plots
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


def brightness(colour: str) -> float:
    parts = [int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    return sum(parts) / 3


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


@pytest.mark.parametrize("name", ["layers", "models", "cloud", "hostile"])
def test_a_phone_never_scrolls_sideways(browser: Any, tmp_path: Path, name: str) -> None:
    opened = Opened(browser, write(tmp_path, RUNS[name]), viewport={"width": 390, "height": 800})
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
