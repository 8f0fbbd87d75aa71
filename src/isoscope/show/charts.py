"""A chart as plain data: what a claim wants drawn. The page draws it for a screen, and a figure for print.

Nothing here needs plotly or matplotlib, so that rows can be made where neither is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Series:
    """Points in order with their intervals, where they have some (NaN: not that one).

    `x` are numbers, or names for places side by side. A `line` joins them, with dots where they have
    intervals; `dots` stand alone; a `thin` line is one of many.
    """

    name: str
    x: Sequence[float | str]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    style: Literal["line", "dots", "thin"] = "line"
    told: Sequence[str] = ()  # of each point, where the pointer rests on it

    def __post_init__(self) -> None:
        lengths = {len(self.y), *(len(each) for each in (self.low, self.high, self.told) if len(each))}
        if lengths != {len(self.x)}:
            raise ValueError(f"{self.name}: {len(self.x)} x and {sorted(lengths)} of the others")


@dataclass(frozen=True)
class Chart:
    """Series on one pair of axes: what they are called, `levels` dashed across by their names.

    Where series are `ordered` (steps, strengths) their colours are too; else a name has one colour in all the
    charts of a claim. Series of one name have one colour and one line in the key. A `centred` chart has the
    origin in its middle and one range on both axes.
    """

    title: str
    x: str
    y: str
    series: Sequence[Series]
    log_x: bool = False
    log_y: bool = False
    levels: Sequence[tuple[float, str]] = ()
    remark: str = ""
    ordered: bool = False
    centred: bool = False

    @property
    def reach(self) -> float:
        """The largest coordinate of all, and a little more."""
        every = [abs(v) for one in self.series for v in (*one.x, *one.y) if not isinstance(v, str)]
        return 1.05 * max((v for v in every if math.isfinite(v)), default=1.0) or 1.0

    @property
    def filled(self) -> bool:
        """Whether there is a single point to draw.

        >>> Chart("", "", "", [Series("a", [1.0], [math.nan])]).filled
        False
        """
        return any(math.isfinite(y) for one in self.series for y in one.y)
