"""One browser for all pages that a process of the tests opens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.show.browser import ARGUMENTS, chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    executable = chromium()
    if executable is None:
        pytest.skip("needs Chromium or Chrome: pages are not opened in a browser")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with playwright.sync_playwright() as tool:
        launched = tool.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        yield launched
        launched.close()
