"""Runs and what is shown of them are those that were kept: rows bit for bit, pages, terminal and print.

Measures that are computed in another order of operations than when the rows were kept agree within 1e-9;
rows of attention, which models of float32 have in float32, within the rounding of float32. The rows were kept
when every chunk of a text was taken for independent, and so it is taken here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from threadpoolctl import threadpool_limits

from isoscope.data.text import Text
from isoscope.measures import table
from isoscope.results.store import read_run
from tests.golden import runs
from tests.golden.keep import KEPT, MACHINE, machine, printed, seen, unpacked

NUMBERS = ("value", "n", "null", "low", "high")
ROUNDED = ("p", "setting")
REWRITTEN = (
    *("uniformity", "partition_isotropy", "cka_", "cluster_cosine", "frequency_correlation"),
    *("mean_cosine_rare", "mean_cosine_middle", "mean_cosine_frequent"),
    *("relative_drift_rare", "relative_drift_middle", "relative_drift_frequent"),
    *("intra_similarity", "rank_residual"),
    *("rogue_contribution", "outlier_dimensions"),  # their nulls
)
"""Measures, and those named after them, whose arithmetic is no longer that of the rows that were kept."""
REDRAWN = (
    *(
        "isoscore",
        "isoscore_star",
        "participation_ratio",
        "effective_rank",
        "rankme",
        "stable_rank",
        "top_share",
    ),
    *("uniformity", "intrinsic_dimension", "local_dimension"),
)
"""Measures whose nulls were those of independent vectors when the rows were kept."""
over_kinds = pytest.mark.parametrize("kind", runs.COMMANDS)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working directory with the inputs of all runs; one thread, which decides the last bits.

    Measures that were added since are not read: "all" are those that were there when the rows were kept.
    """
    before, threads = Path.cwd(), torch.get_num_threads()
    folder = tmp_path_factory.mktemp("golden")
    os.chdir(folder)
    torch.set_num_threads(1)
    runs.give_inputs()
    then = {name for kind in runs.COMMANDS for name in unpacked(kind).run.measures}
    known = tuple(measure for measure in table.MEASURES if measure.name in then)
    with threadpool_limits(1), pytest.MonkeyPatch.context() as patch:
        told = Text.facts
        patch.setattr(table, "MEASURES", known)
        patch.setattr(Text, "_units", (None, ""))
        patch.setattr(Text, "facts", lambda text: {k: v for k, v in told(text).items() if k != "units"})
        yield folder
    torch.set_num_threads(threads)
    os.chdir(before)


def bits(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with their numbers as the integers of their bits; all that is missing is one number."""
    rows = rows.drop(columns=[*ROUNDED])
    numbers = rows[list(NUMBERS)].astype("float64").fillna(np.nan)
    return rows.drop(columns=[*NUMBERS]).join(numbers.apply(lambda column: column.to_numpy().view("int64")))


@over_kinds
def test_rows_are_those_that_were_kept(kind: str, here: Path) -> None:
    if json.loads(MACHINE.read_text()) != machine():
        pytest.skip("rows were kept on another processor, where last bits may differ")
    runs.make(kind)
    kept, made = unpacked(kind), read_run(Path("runs") / kind)
    assert made.run.id == kept.run.id
    assert made.units() == kept.units()
    rows, before = made.frame(), kept.frame()
    if kind == "compare":  # it measures models with the default measures, of which there are fewer now
        extra = {measure.name for measure in table.choose("all") if measure.extra}
        before = before[~(before["measure"].isin(extra) & (before["model"] == "bert"))].reset_index(drop=True)
    for frame in (rows, before):
        frame.loc[frame["measure"].isin(REDRAWN), "null"] = np.nan
        frame.loc[frame["measure"] == "drift_share", ["low", "high"]] = np.nan  # there were none
    rewritten = before["measure"].str.startswith(REWRITTEN)
    single = before["kind"].str.contains("attention")
    exact = ~(rewritten | single)
    pd.testing.assert_frame_equal(bits(rows[exact]), bits(before[exact]), check_exact=True)
    for some, rtol, atol in ((rewritten, 1e-9, 0), (single, 2e-5, 2e-6)):
        one, other = (frame[some].drop(columns=[*ROUNDED]) for frame in (rows, before))
        pd.testing.assert_frame_equal(one, other, rtol=rtol, atol=atol)
    for column in ROUNDED:  # schema 1 kept these as texts of a few digits
        np.testing.assert_allclose(rows[column], before[column], rtol=0.05, err_msg=column)


@over_kinds
def test_what_is_shown_is_what_was_kept(kind: str, here: Path) -> None:
    for name, text in seen(unpacked(kind)).items():
        assert text.splitlines() == (KEPT / kind / name).read_text(encoding="utf-8").splitlines(), name


@pytest.mark.nightly
@over_kinds
def test_print_is_what_was_kept(kind: str, here: Path) -> None:
    kept = (KEPT / kind / "print.json").read_text(encoding="utf-8")
    assert printed(unpacked(kind)).splitlines() == kept.splitlines()
