"""Cases that `make test` leaves to `make nightly`."""

from __future__ import annotations

from typing import Any

import pytest


def nightly(*cases: Any) -> list[Any]:
    """Mark these cases of a grid; a tuple holds the values of several arguments."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.nightly)
        for case in cases
    ]
