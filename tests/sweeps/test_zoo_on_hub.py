"""Names of the zoo against a hub on loopback: what is measured, weighed and swept is what they stand for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from isoscope.results.store import read_run
from tests.sweeps.pointed import COMMANDS, Pointed, pointed
from tests.sweeps.trajectory import walk

pytestmark = pytest.mark.nightly
VERB = """
import sys
from isoscope.cli.main import app
app(sys.argv[1:], standalone_mode=False)
"""
FEW = (
    "--limit",
    2,
    "--max-length",
    12,
    "--measures",
    "mean_cosine",
    "--layers",
    "layer.*",
    "--tokens",
    "bytes",
)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pointed]:
    place = tmp_path_factory.mktemp("zoo")
    with pointed(place, *COMMANDS) as found:
        first, second = walk(place / "models", [0, 1000])
        found.hub.models |= {
            "EleutherAI/pythia-70m": {"main": second, "step0": first, "step1000": second},
            "google/multiberts-seed_0-step_0k": {"main": first},
            "google/multiberts-seed_0-step_20k": {"main": second},
            "google-bert/bert-base-uncased": {"main": first},
        }
        yield found


def said(there: Pointed, folder: Path, *words: object) -> Path:
    """Where the run is that a command made."""
    running = there.run(folder / "said", VERB, *words, "--out", folder / "run")
    while not running.is_dead():
        time.sleep(0.01)
    assert running.ended() == 0, (folder / "said" / "err").read_text()
    return folder / "run"


def test_a_name_is_measured_and_weighed(there: Pointed, tmp_path: Path) -> None:
    rows = read_run(said(there, tmp_path / "measured", "measure", "bert", *FEW)).frame()
    assert set(rows["model"]) == {"google-bert/bert-base-uncased"}
    rows = read_run(said(there, tmp_path / "weighed", "weights", "bert")).frame()
    assert "trace" in set(rows["measure"])


@pytest.mark.parametrize(
    ("name", "pattern", "steps"),
    [
        ("pythia-70m", "step{0,1000}", {0, 1000}),
        ("multiberts", "step_{0,20}k", {0, 20000}),
    ],
)
def test_a_name_is_swept(there: Pointed, tmp_path: Path, name: str, pattern: str, steps: set[int]) -> None:
    run = said(there, tmp_path, "sweep", name, "--revisions", pattern, "--workers", 0, *FEW)
    rows = read_run(run).frame()
    assert set(rows["model"]) == {name}
    assert set(rows[rows["measure"] == "mean_cosine"]["step"]) == steps
