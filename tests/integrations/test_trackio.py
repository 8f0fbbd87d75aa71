"""What trackio shows, read back from its database, is what its sink was told; else a stand-in is."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from isoscope.errors import IsoscopeError
from isoscope.integrations import trackers
from tests.integrations.told import Said, assert_shown, watched
from tests.tiers import nightly

TRACKIO = """
import json, math, sys
import trackio
from isoscope.integrations import trackers

run = trackio.init(project="isoscope", name="mine", auto_log_cpu=False, auto_log_gpu=False)
sink = trackers.trackio(run) if sys.argv[1] == "its run" else trackers.trackio()
sink(0, {"isoscope/a/mean": 0.5, "isoscope/a/max": math.nan})
sink(4, {"isoscope/a/mean": 1.5, "isoscope/a/max": 2.5})
run.finish()
print("shown:" + json.dumps(trackio.SQLiteStorage.get_logs("isoscope", "mine")))
"""


@pytest.mark.skipif(find_spec("trackio") is None, reason="needs trackio")
@pytest.mark.parametrize("given", ["the active run", *nightly("its run")])
def test_trackio(given: str, tmp_path: Path) -> None:
    told = subprocess.run(  # where its files are is settled when it is imported
        [sys.executable, "-c", TRACKIO, given],
        env={**os.environ, "TRACKIO_DIR": str(tmp_path), "HF_HUB_OFFLINE": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    (line,) = [line for line in told.stdout.splitlines() if line.startswith("shown:")]
    shown = {
        row["step"]: {name: value for name, value in row.items() if name.startswith("isoscope/")}
        for row in json.loads(line.removeprefix("shown:"))
    }
    assert shown[4] == {"isoscope/a/mean": 1.5, "isoscope/a/max": 2.5}
    assert shown[0]["isoscope/a/mean"] == 0.5
    assert math.isnan(float(shown[0]["isoscope/a/max"]))
    assert list(tmp_path.rglob("*.db"))


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Said:
    """The two functions of trackio that a sink needs, where trackio itself is not to be had."""
    kept: Said = {}
    library: Any = ModuleType("trackio")
    library.running = False

    def log(metrics: dict[str, float], step: int | None = None) -> None:
        if not library.running:
            raise RuntimeError("Call trackio.init() before trackio.log().")
        assert step is not None
        kept[step] = metrics

    def init() -> Any:
        library.running = True
        return library

    library.log, library.init = log, init
    monkeypatch.setitem(sys.modules, "trackio", library)
    return kept


@pytest.mark.parametrize("given", [True, False], ids=["its run", "the active run"])
def test_trackio_is_given_all(given: bool, stand_in: Said) -> None:
    run = sys.modules["trackio"].init()
    assert_shown(stand_in, watched(trackers.trackio(run) if given else trackers.trackio()))


@pytest.mark.usefixtures("stand_in")
def test_where_no_run_is_active_it_says_what_to_call() -> None:
    with pytest.raises(IsoscopeError, match=r"no run of trackio is active: call trackio.init\(...\) before"):
        trackers.trackio()(0, {"isoscope/a/mean": 1.0})
