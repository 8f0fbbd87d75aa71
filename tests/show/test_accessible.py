"""The page for those who do not see it, or use no mouse: axe finds nothing serious, and keys reach all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.show.browser import Opened, violations
from tests.show.test_browser import RUNS, write
from tests.tiers import nightly


@pytest.mark.parametrize("scheme", ["dark", *nightly("light")])
@pytest.mark.parametrize("name", ["layers", *nightly(*(name for name in RUNS if name != "layers"))])
def test_axe_finds_nothing_serious(browser: Any, tmp_path: Path, name: str, scheme: str) -> None:
    opened = Opened(browser, write(tmp_path, RUNS[name]), color_scheme=scheme)
    opened.unfold()
    assert violations(opened.page) == []
    opened.context.close()


def test_axe_would_find_what_cannot_be_read(browser: Any, tmp_path: Path) -> None:
    opened = Opened(browser, write(tmp_path, RUNS["layers"]))
    opened.page.add_style_tag(content=".headline { color: #ddd; background: #fff }")
    assert [each for each in violations(opened.page) if each.startswith("color-contrast")]
    opened.context.close()


def test_keys_reach_the_sections_the_pickers_and_the_table(browser: Any, tmp_path: Path) -> None:
    opened = Opened(browser, write(tmp_path, RUNS["attention"]))
    reached = set()
    for _ in range(400):
        opened.page.keyboard.press("Tab")
        reached.add(
            opened.page.evaluate("document.activeElement.tagName + '.' + document.activeElement.className")
        )
        if opened.page.evaluate("document.activeElement.closest('.rows th:last-child') !== null"):
            break
    tags = {each.partition(".")[0] for each in reached}
    assert {"A", "SUMMARY", "BUTTON", "INPUT"} <= tags
    opened.page.keyboard.press("Enter")
    assert opened.count("th[aria-sort=ascending]") == 1
    opened.context.close()
