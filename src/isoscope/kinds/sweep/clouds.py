"""Queries and keys of a head at all steps, on axes that they share: an album whose steps can be played."""

from __future__ import annotations

import pandas as pd

from isoscope.show.figures.albums import Album, Line
from isoscope.show.figures.clouds import AXES, album

_PREFIX = "steps "


def moving_album(points: pd.DataFrame, rows: pd.DataFrame) -> Album[list[Line]] | None:
    """The album of a sweep; None where no checkpoint kept its queries and keys."""
    found = by_step(points)
    return album(found, rows) if len(found) else None


def by_step(points: pd.DataFrame) -> pd.DataFrame:
    """The points of all steps as if each step had been drawn alone: its unit is the step."""
    own = points[points["picture"].astype(str).str.startswith(_PREFIX)]
    if own.empty:
        return own
    own = own.assign(picture=own["picture"].str.removeprefix(_PREFIX))
    own = own[own["picture"].isin(list(AXES))]
    share = own[own["series"] == "share"]
    parts = own[own["series"] != "share"]
    named = parts["series"].str.rsplit(" ", n=1, expand=True)
    steps = named[1].astype(int)
    parts = parts.assign(series=named[0], unit=steps.map(called)).iloc[steps.argsort(kind="stable")]
    shares = [share.assign(unit=called(step)) for step in sorted(set(steps))]
    return pd.concat([parts, *shares], ignore_index=True)


def called(step: int) -> str:
    """As an album takes it for a step.

    >>> called(40)
    'step 000040'
    """
    return f"step {step:06d}"
