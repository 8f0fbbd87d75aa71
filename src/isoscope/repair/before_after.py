"""The geometry of a sample before a repair and after it: the rows that a table is made of."""

from __future__ import annotations

import pandas as pd

from isoscope.repair.fit.sample import Sample
from isoscope.repair.keep.repair import Repair
from isoscope.run.observe.observe import describe

SHOWN = ("mean_cosine_between", "relative_drift", "isoscore", "effective_rank")


def before_after(repair: Repair, sample: Sample) -> pd.DataFrame:
    """Rows of `SHOWN`, of the model ``before`` and of ``after``; each with its n, null and interval."""
    moved = repair.apply(sample.points)
    tables = [
        describe(points, sequence=sample.sequence, measures=SHOWN, name=name).frame()
        for name, points in (("before", sample.points), ("after", moved))
    ]
    return pd.concat(tables, ignore_index=True)
