"""Points of pictures: what a figure shows of a unit beside its rows, kept so that a page can draw it.

One table for every picture: which picture, of which site, which series in it, and where each point lies.
The columns are fixed and specified in `docs/format.md`. Decided here: coordinates are float32, since a
picture shows three digits; what belongs to a picture as a whole is a series of one point.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

POINT_COLUMNS: dict[str, str] = {
    "picture": "str",
    "kind": "str",
    "layer": "Int64",
    "head": "Int64",
    "series": "str",
    "x": "float32",
    "y": "float32",
}

_MOVING = "steps "


def moving(name: str, step: int | None = None) -> str:
    """What a picture of all steps is called, and in it the series of one step.

    >>> moving("shared"), moving("query", 1000)
    ('steps shared', 'query 1000')
    """
    return f"{_MOVING}{name}" if step is None else f"{name} {step}"


def of_moving(points: pd.DataFrame) -> pd.DataFrame:
    """The points of pictures of all steps, by the plain name of picture and series, with a column `step`.

    What belongs to a picture as a whole has no step.
    """
    own = points[points["picture"].astype(str).str.startswith(_MOVING)]
    named = own["series"].astype(str).str.extract(r"^(?P<series>.*?)(?: (?P<step>\d+))?$")
    return own.assign(
        picture=own["picture"].astype(str).str.removeprefix(_MOVING), series=named["series"],
        step=pd.to_numeric(named["step"]).astype("Int64"),
    )  # fmt: skip


@dataclass(frozen=True)
class Points:
    """One series of one picture: `x` and `y` [n] of the points of a site, or of one head of it."""

    picture: str
    kind: str
    layer: int | None
    head: int | None
    series: str
    x: Sequence[float]
    y: Sequence[float]


def points_frame(series: Iterable[Points]) -> pd.DataFrame:
    """Series as one table in the order given, one row a point, with the types of `POINT_COLUMNS`.

    >>> points_frame([Points("shared", "attention", 1, 0, "query", [0.5, 1.0], [2.0, 3.0])])[["series", "x"]]
      series    x
    0  query  0.5
    1  query  1.0
    """
    columns: dict[str, list[object]] = {name: [] for name in POINT_COLUMNS}
    for one in series:
        if len(one.x) != len(one.y):
            raise ValueError(f"{one.picture}, {one.series}: {len(one.x)} x and {len(one.y)} y")
        for name in ("picture", "kind", "layer", "head", "series"):
            columns[name] += [getattr(one, name)] * len(one.x)
        columns["x"] += one.x
        columns["y"] += one.y
    return pd.DataFrame(columns).astype(POINT_COLUMNS)
