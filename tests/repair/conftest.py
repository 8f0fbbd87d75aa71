"""What is drawn in a test is the same each time, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    """Random numbers from one seed on."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
