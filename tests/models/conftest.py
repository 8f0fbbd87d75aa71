"""Tiny models on disk, each written once a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a saved model, by family."""
    from tests.models import tiny  # imports transformers, without which the tap is tested too

    return cache(lambda family: tiny.save(family, tmp_path_factory.mktemp(family)))
