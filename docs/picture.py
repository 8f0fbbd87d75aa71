"""Make the README's picture: directions on the demo's page, as a browser shows them. Needs Chromium."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

PAGE, PICTURE = Path("runs/demo/report.html"), Path("docs/demo.png")
SECTION = "directions"
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")


def main() -> None:
    """Open the page and take its picture."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None or not PAGE.exists():
        sys.exit(f"needs Chromium and {PAGE}; `make demo` makes the page")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=list(QUIET))
        page = chromium.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
        page.goto(PAGE.absolute().as_uri())
        page.wait_for_selector(".main-svg .trace", state="attached")
        page.wait_for_timeout(500)
        top = page.locator(f"#{SECTION}").evaluate("one => one.getBoundingClientRect().top + scrollY")
        figures = page.locator(f"#{SECTION} .panels").first
        bottom = figures.evaluate("one => one.getBoundingClientRect().bottom + scrollY")
        shown = {"x": 90, "y": top, "width": 1100, "height": bottom - top + 8}
        page.screenshot(path=PICTURE, clip=shown, full_page=True)
        chromium.close()


if __name__ == "__main__":
    main()
