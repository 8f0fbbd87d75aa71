"""The page of something that was just measured and is in no run folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path

import pandas as pd

from isoscope.measures.base import Measure
from isoscope.results.store import write_file
from isoscope.run.provenance import Explained, new_run

PAGE = "report.html"


def write_page(
    path: str | PathLike[str],
    kind: str,
    model: str,
    measures: Iterable[Measure],
    rows: pd.DataFrame,
    known: Mapping[str, object],
    points: pd.DataFrame,
    told: Explained | None = None,
) -> Path:
    """Write the page of these rows and return its path; `told` explains numbers that are no `Measure`."""
    from isoscope.show.page.page import page  # plotly is imported for a page only

    question = {name: value for name, value in known.items() if name != "notes"}
    run = new_run(kind, model, question, measures, told)
    rows = rows.assign(run=run.id)
    return write_file(path, page(run, rows, {model: known}, points.assign(unit=model)).encode())
