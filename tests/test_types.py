"""Types are checked by mypy, beside the tests: alone it would be a minute on one core."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_mypy_finds_nothing() -> None:
    pytest.importorskip("mypy", reason="needs mypy")
    checked = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
