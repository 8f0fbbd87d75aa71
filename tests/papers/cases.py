"""Rows for judges, and a workshop of the smallest size."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from pydoc_data import topics

import pandas as pd

from isoscope.lab.block.block import Setting
from isoscope.papers.scales import Scale, Size
from isoscope.papers.workshop import Workshop
from isoscope.results.reading import Reading
from isoscope.results.row import Row

TINY = Size(1, 16, 2, 16, steps=4, batch_size=2, rate=3e-3, checkpoints="log")


@dataclass(frozen=True)
class Case:
    """Rows that agree with a claim, that contradict it, and that leave it undecided."""

    agree: pd.DataFrame
    contradict: pd.DataFrame
    undecided: pd.DataFrame


def row(
    model: str,
    measure: str,
    value: float,
    *,
    seed: int = 0,
    revision: str | None = None,
    kind: str = "layer",
    layer: int | None = 1,
    head: int | None = None,
    step: int | None = None,
    n: int = 100,
    low: float = math.nan,
    high: float = math.nan,
    null: float = math.nan,
    note: str = "",
) -> Row:
    """One row, as an experiment gives it."""
    called = f"seed {seed}" if revision is None else revision
    return Row.at(
        "", model, called, step, kind, layer, head, measure, Reading(value, n, null, low, high, note)
    )


def linger(file: Path) -> None:
    """Tell which process this is, and stay."""
    aside = file.with_suffix(".aside")
    aside.write_text(str(os.getpid()))
    aside.rename(file)
    time.sleep(300)


def tiny_workshop(models: Path, *, seeds: int = 2, public: bool = False) -> Workshop:
    """A workshop whose trainings take a second, from little text: of more, sub-words take longer."""
    models.mkdir(parents=True, exist_ok=True)
    text = models / "text.txt"
    if not text.exists():
        text.write_text("\n".join(topics.topics.values())[:20_000])
    block = Setting(8, 2, 8, 8, passes=0)
    scale = Scale("tiny", "for tests", TINY, TINY, seeds=seeds, parallel=1, public=public, block=block)
    return Workshop(scale, models, seeds, data={"text": str(text)})
