"""Make the small pictures of pages in docs/assets, page-KIND.png: the top of each page as a browser shows it.

    python docs/shots.py RUN …

One folder for each kind; its page is made anew from its rows. Needs Chromium.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from isoscope.kinds.report import page_of
from isoscope.results.store import read_run

ASSETS = Path(__file__).parent / "assets"
NAMES = {"training": "train", "demo": "train", "observe": "measure"}
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
WIDTH, LEAST, MOST = 1280, 900, 1200
COLOURS = 128  # a picture takes 40 to 80 kB
DRAWN = """() => [...document.querySelectorAll(".plot")].every(
    (one) => one.classList.contains("js-plotly-plot") || one.closest("details:not([open]), [hidden]"))"""


def main() -> None:
    """Take a picture of the page of each folder."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None or len(sys.argv) < 2:
        sys.exit(f"needs Chromium and run folders\n{__doc__}")
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as aside:
        chromium = driver.chromium.launch(executable_path=browser, args=list(QUIET))
        page = chromium.new_page(viewport={"width": WIDTH, "height": LEAST}, color_scheme="light")
        for given in sys.argv[1:]:
            folder = read_run(Path(given))
            file = Path(aside) / "report.html"
            file.write_text(page_of(folder), encoding="utf-8")
            page.goto(file.as_uri())
            page.wait_for_function(DRAWN)
            bottom = page.evaluate("document.querySelector('.plot').getBoundingClientRect().bottom") + 16
            shown = {"x": 0, "y": 0, "width": WIDTH, "height": max(LEAST, min(MOST, bottom))}
            taken = page.screenshot(clip=shown, full_page=True)
            picture = (
                Image.open(io.BytesIO(taken))
                .convert("RGB")
                .quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            )
            out = ASSETS / f"page-{NAMES.get(folder.run.kind, folder.run.kind)}.png"
            picture.save(out, optimize=True)
        chromium.close()


if __name__ == "__main__":
    main()
