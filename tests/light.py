"""A plugin that makes heavy libraries impossible to import: `make quick` does without them."""

from __future__ import annotations

import sys


def pytest_configure() -> None:
    """Make importing any of them an error."""
    for name in ("transformers", "playwright", "datasets", "lightning", "ray"):
        sys.modules[name] = None  # type: ignore[assignment]
