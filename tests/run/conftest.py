"""A tiny BERT on disk, and ragged lines to read it with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models import tiny
from tests.run.independent import write_topics


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny.save("bert", tmp_path_factory.mktemp("bert")))


@pytest.fixture(scope="session")
def lines(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_topics(Path(tmp_path_factory.mktemp("text")) / "lines.txt", 60)
