"""The same on real weights, where the environment names a model folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.run.independent import check, write_topics

FOLDER = os.environ.get("ISOSCOPE_REAL_MODEL", "")


@pytest.mark.skipif(not FOLDER, reason="ISOSCOPE_REAL_MODEL names no model folder")
@pytest.mark.parametrize("pack", [True, False])
def test_real_weights(tmp_path: Path, pack: bool) -> None:
    check(FOLDER, write_topics(tmp_path / "topics.txt", 200), pack=pack, length=64, limit=24)
