"""A trajectory to sweep over: a training of the lab with more than thirty checkpoints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from isoscope.cli.main import main

SMALL = "--layers 1 --width 8 --heads 2 --length 8 --steps 40 --batch-size 2"


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `isoscope train` makes it."""
    out = tmp_path_factory.mktemp("trained") / "run"
    with pytest.MonkeyPatch.context() as patch:
        words = [
            "isoscope",
            "train",
            "characters",
            *SMALL.split(),
            "--checkpoints",
            "log:32",
            "--out",
            str(out),
        ]
        patch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as end:
            main()
    assert not end.value.code
    return out
