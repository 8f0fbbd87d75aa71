"""A page opened in a browser, and what the tests ask of it there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

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
MARKS = "svg.main-svg .trace .points path, .heatmaplayer image"
DRAWN = f"nodes => nodes.filter(n => n.querySelector('{MARKS}')).length"


def chromium() -> str | None:
    """The path of a Chromium or Chrome on this machine."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


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
        self.page.wait_for_function(
            f"() => {waiting}.every((n) => n.closest('details:not([open]), [hidden]'))"
        )

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


def brightness(colour: str) -> float:
    parts = [int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    return sum(parts) / 3


DETACH = """(selector) => {
    window.detached = [...document.querySelectorAll(selector)].map((node) => {
        const mark = document.createComment("");
        node.replaceWith(mark);
        return [mark, node];
    });
}"""
ATTACH = "() => window.detached.forEach(([mark, node]) => mark.replaceWith(node))"


def violations(page: Any, without: str = "") -> list[str]:
    """What axe calls serious or critical on a page.

    The elements of the selector `without` are taken off the page meanwhile: axe needs seconds for thousands.
    """
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    options = {"resultTypes": ["violations"], "elementRef": False}
    if without:
        page.evaluate(DETACH, without)
    found = axe.Axe().run(page, None, options).response["violations"]
    if without:
        page.evaluate(ATTACH)
    return [
        f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
