"""A training run as the terminal shows it while it trains: how far, how the layers move, what is wrong.

A `LiveView` is a sink and an alarm callback of a Monitor: `Monitor(…, sinks=[view], on_alarm=view.alarm)`.
Call `view.watch(monitor)` once and `view.progress(step)` after each step.

It redraws at most four times a second, when it is called, and has no thread of its own. It writes to stderr;
where that is not a terminal, one plain line per measurement. All sparklines of a column share one scale, so
that layers can be compared.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

import pandas as pd
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from isoscope.cli.screen.terminal import rendered
from isoscope.formatting import number
from isoscope.kinds.screen import Table, headed
from isoscope.run.monitor.alarms import Alarm
from isoscope.run.monitor.monitor import Monitor
from isoscope.run.monitor.own import OWN
from isoscope.show.figures.step_axis import spaced
from isoscope.show.measures import WHILE_TRAINING, heading_of

BETWEEN = 0.25  # seconds: at most four drawings a second
MOST_ALARMS = 3
LENGTH = 8  # looks that a sparkline of a layer shows
_BARS = "▁▂▃▄▅▆▇█"
_BESIDE = 9  # lines of the panel that are not layers: its frame, progress, numbers, heads of the table
_SITE, _COLUMN = 8, 6 + 1 + LENGTH + 3  # columns of the terminal

Line = tuple[str, int | None]
"""A line of the table: a layer with the attention of its block, or what has no layer."""
Series = Mapping[str, Mapping[Line, Sequence[float]]]
"""The values of the last looks, by measure and line; numbers of the loop's own are on the line `OWN`."""


class LiveView:
    """What a Monitor sees, drawn while it sees it. Call `watch` with the Monitor once it is made."""

    def __init__(
        self, title: str, *, steps: int | None = None, console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.title, self.alarms, self.series = title, list[Alarm](), dict[str, dict[Line, list[float]]]()
        self.console = Console(stderr=True) if console is None else console
        columns = (TextColumn("{task.description}"), BarColumn(28), TimeRemainingColumn())
        self._progress = Progress(*columns, auto_refresh=False, get_time=clock, speed_estimate_period=600)
        self._progress.add_task("", total=steps)
        self._clock, self._drawn = clock, -math.inf
        self._monitor: Monitor | None = None
        self._live: Live | None = None

    def watch(self, monitor: Monitor) -> None:
        """Take layers and the cost of looking from this Monitor."""
        self._monitor = monitor

    def progress(self, step: int, steps: int | None = None) -> None:
        """Say that so many updates are done, of so many."""
        task = self._progress.tasks[0].id
        self._progress.update(task, completed=step, total=steps)
        self._progress.update(task, description=f"step {step:,}{self._of()}")
        self._draw()

    def __call__(self, step: int, summaries: Mapping[str, float]) -> None:
        """Hear of a look: what a sink is told."""
        rows = None if self._monitor is None else self._monitor.latest()
        if rows is not None and len(rows):
            add_look(self.series, rows)
        if self._live is None:
            self._say(self._line(step, summaries))
        self._draw(now=True)

    def alarm(self, alarm: Alarm) -> None:
        """Hear of an alarm."""
        self.alarms.append(alarm)
        if self._live is None:
            self._warn(alarm)
        self._draw(now=True)

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live = Live(console=self.console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()
            for alarm in self.alarms:  # what was on the screen is gone; this stays
                self._warn(alarm)

    def drawn(self) -> RenderableType:
        """The panel as it is now."""
        lines = max(3, self.console.height - _BESIDE - min(len(self.alarms), MOST_ALARMS))
        parts = [self._progress.get_renderable(), Text("   ".join(self._numbers()))]
        if self.series:
            parts.append(rendered(layers_table(self.series, self.console.width - 4, lines)))
        for alarm in self.alarms[-MOST_ALARMS:]:
            parts.append(Text(f"⚠ {alarm.words}", style="yellow", overflow="ellipsis", no_wrap=True))
        return Panel(Group(*parts), title=self.title, title_align="left", border_style="dim")

    def _draw(self, *, now: bool = False) -> None:
        if self._live is None or (not now and self._clock() - self._drawn < BETWEEN):
            return
        self._live.update(self.drawn(), refresh=True)
        self._drawn = self._clock()

    def _of(self) -> str:
        steps = self._progress.tasks[0].total
        return "" if steps is None else f" of {steps:,.0f}"

    def _numbers(self) -> list[str]:
        """The loop's own numbers, each with its way so far, the pace, and what looking takes."""
        parts = [f"{name} {number(values[-1])} {sparkline(values)}" for name, values in self._own()]
        if pace := self._progress.tasks[0].speed:
            parts.append(f"{number(pace)} steps/s" if pace >= 1 else f"{number(1 / pace)} s a step")
        share = None if self._monitor is None else self._monitor.budget["share spent"]
        if isinstance(share, float):
            parts.append(f"looking adds {100 * share:.{0 if share >= 0.1 else 1}f} % to the time of training")
        return parts

    def _own(self) -> list[tuple[str, Sequence[float]]]:
        return [(name, lines[OWN, None]) for name, lines in self.series.items() if (OWN, None) in lines]

    def _line(self, step: int, summaries: Mapping[str, float]) -> str:
        """A look in one line: the loop's own numbers, then of each measure the mean over layers."""
        own = [f"{name} {number(values[-1])}" for name, values in self._own()]
        found = {name: summaries.get(f"isoscope/{name}/mean", math.nan) for name in WHILE_TRAINING}
        known = {heading_of(name): value for name, value in found.items() if not math.isnan(value)}
        means = [" ".join([*heading.split("\n"), number(value)]) for heading, value in known.items()]
        return f"step {step:,}{self._of()}: {', '.join([*own, *means])}"

    def _warn(self, alarm: Alarm) -> None:
        self._say(f"alarm: {alarm.words}", "yellow")

    def _say(self, text: str, style: str | None = None) -> None:
        self.console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def add_look(series: dict[str, dict[Line, list[float]]], rows: pd.DataFrame) -> None:
    """Add the rows of one look to the series of the last looks."""
    shown = rows[rows["head"].isna() & (rows["measure"].isin(WHILE_TRAINING) | (rows["kind"] == OWN))]
    columns = (shown["kind"], shown["layer"].astype(object), shown["measure"], shown["value"])
    for kind, layer, measure, value in zip(*columns, strict=True):
        line = "layer" if kind == "attention" else str(kind), None if layer is pd.NA else int(layer)
        values = series.setdefault(str(measure), {}).setdefault(line, [])
        values.append(float(value))
        del values[: -(3 * LENGTH if kind == OWN else LENGTH)]


def layers_table(series: Series, width: int, most: int) -> Table:
    """A line per layer: as many measures as the width has room for, at most so many layers, evenly spaced."""
    names = [name for name in WHILE_TRAINING if name in series][: max(1, (width - _SITE) // _COLUMN)]
    every = sorted(  # by depth, what has no layer last
        {line for name in names for line in series[name]},
        key=lambda line: (line[1] is None, line[0] != "layer", line[1] or 0, line[0]),
    )
    scales = {name: _scale(series[name].values()) for name in names}
    lines = []
    for kind, layer in spaced(every, most):
        site = str(layer) if kind == "layer" else kind if layer is None else f"{kind} {layer}"
        cells = (_cell(series[name].get((kind, layer), ()), scales[name]) for name in names)
        lines.append((site, *cells))
    fewer = f"{len(lines)} of {len(every)} layers" if len(lines) < len(every) else ""
    columns = headed(("layer",), map(heading_of, names))
    return Table(columns, tuple(lines), caption=fewer, boxed=False)


def sparkline(values: Sequence[float], scale: tuple[float, float] | None = None) -> str:
    """The way of these values as bars, a blank where there is none.

    >>> sparkline([0.0, 0.5, float("nan"), 1.0])
    '▁▅ █'
    """
    low, high = _scale([values]) if scale is None else scale
    steps = (len(_BARS) - 1) / ((high - low) or 1.0)
    return "".join(_BARS[round((v - low) * steps)] if math.isfinite(v) else " " for v in values)


def _cell(values: Sequence[float], scale: tuple[float, float]) -> str:
    if not values:
        return ""
    value = "NaN" if math.isnan(values[-1]) else number(values[-1])
    return f"{value} {sparkline(values, scale):<{LENGTH}}"


def _scale(lines: Iterable[Sequence[float]]) -> tuple[float, float]:
    found = [value for line in lines for value in line if math.isfinite(value)]
    return (min(found), max(found)) if found else (0.0, 1.0)
