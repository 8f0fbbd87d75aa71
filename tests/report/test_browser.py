"""The page in a browser: drawn, silent, alone, sortable, and readable in the dark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isoscope.report.colours import AMOUNT
from isoscope.report.page import page
from isoscope.results.schema import Row, frame
from tests.report.made import a_run, attended, clouds, compared, layered, part_rows, row, trained, whole

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
MARKS = "svg.main-svg .trace .points path, .heatmaplayer image"
DRAWN = f"nodes => nodes.filter(n => n.querySelector('{MARKS}')).length"


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
        self.settle()

    def settle(self) -> None:
        """Wait until all is drawn that is not folded."""
        waiting = "[...document.querySelectorAll('.plot:not(.js-plotly-plot)')]"
        self.page.wait_for_function(f"() => {waiting}.every((n) => n.closest('details:not([open])'))")

    def unfold(self) -> None:
        """Open every section."""
        self.page.locator("details.section").evaluate_all("all => all.forEach((one) => (one.open = true))")
        self.settle()

    def drawn(self, within: str = "") -> int:
        """How many figures show their points."""
        return int(self.page.locator(f"{within} .plot").evaluate_all(DRAWN))

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
