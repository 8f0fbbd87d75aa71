"""mypy checks the types. It runs as a test, so that the other process works meanwhile."""

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
