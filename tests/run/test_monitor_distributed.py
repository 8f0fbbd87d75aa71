"""Two processes that train one model: watched or not the same, and their rows are those of one."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

import pandas as pd
import pytest
import torch

import isoscope
from isoscope.models.source import Model
from tests.run.independent import assert_merged
from tests.run.ranks import STEPS, WAYS
from tests.run.training import language, probe


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, "-m", "tests.run.ranks"]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = [subprocess.Popen([*command, str(rank), str(folder)], env=alone) for rank in (0, 1)]
    assert [process.wait(timeout=200) for process in started] == [0, 0]
    return [pickle.loads((folder / f"rank-{rank}.pickle").read_bytes()) for rank in (0, 1)]


@pytest.mark.parametrize("way", WAYS)
def test_training_is_the_same(ranks: list[dict[str, Any]], way: str) -> None:
    for rank in ranks:
        alone, watched = rank[way]
        assert alone["losses"] == watched["losses"]
        assert all(torch.equal(x, watched["weights"][name]) for name, x in alone["weights"].items())
    assert ranks[0][way][0]["losses"] != ranks[1][way][0]["losses"]  # each has data of its own


@pytest.mark.parametrize("way", WAYS)
def test_two_ranks_give_the_rows_of_one(ranks: list[dict[str, Any]], way: str) -> None:
    first, second = (rank[way][1] for rank in ranks)
    rows = first["rows"]
    assert set(rows.step) == set(range(2 * STEPS))
    after = rows[rows.step % 2 == 1].reset_index(drop=True)
    assert_merged(after, pd.concat(first["expected"], ignore_index=True))
    assert len(second["rows"]) == 0 and second["folder"] is None
    pd.testing.assert_frame_equal(isoscope.read_run(first["folder"]).frame(), rows)


def test_a_mean_over_all_of_the_probe_is_taken_whole(ranks: list[dict[str, Any]]) -> None:
    rows = ranks[0]["whole"]["rows"]
    assert rows[rows.measure == "drift_share"].value.notna().all()
    after = rows[rows.step % 2 == 1].drop(columns="run").reset_index(drop=True)
    expected = pd.concat(ranks[0]["whole"]["expected"], ignore_index=True).drop(columns="run")
    pd.testing.assert_frame_equal(after, expected)


def test_ranks_with_probes_of_their_own(ranks: list[dict[str, Any]]) -> None:
    given = probe(4)
    both = [*given[0:1], *given[2:4]]
    names = list(dict.fromkeys(ranks[0]["own"].measure))
    expected = isoscope.observe(Model(language(), "model", step=0), both, measures=names, heads=True).frame()
    assert_merged(ranks[0]["own"], expected)


def test_what_ends_training_ends_it_everywhere(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["raised"] == ranks[1]["raised"]
    site, refused = ranks[0]["raised"]
    assert site == "layer.0"
    assert "a file is there; give another --out" in refused
