"""A training run as the terminal shows it while it trains: how far, how the layers move, what is wrong.

A `LiveView` is a sink and an alarm callback of a Monitor:

    with LiveView("training", steps=2000) as view:
        monitor = Monitor(model, probe, sinks=[view], on_alarm=view.alarm)
        view.watch(monitor)
        for step, batch in enumerate(loader):
            monitor.step(step)
            view.progress(step)

Decided here: it draws when it is told something, at most four times a second, and has no thread of its own,
so training waits for nothing. It writes to stderr; where that is not a terminal, one plain line a look.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

import pandas as pd
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from isoscope.cli.screen.live_table import MEASURES, History, layers_table, sparkline
from isoscope.formatting import number
from isoscope.run.monitor.alarms import Alarm
from isoscope.run.monitor.monitor import Monitor

BETWEEN = 0.25  # seconds: at most four drawings a second
MOST_ALARMS = 3
_BESIDE = 9  # lines of the panel that are not layers: its frame, progress, numbers, heads of the table
_BAR = 28


class LiveView:
    """What a Monitor sees, drawn while it sees it. Call `watch` with the Monitor once it is made."""

    def __init__(
        self,
        title: str,
        *,
        steps: int | None = None,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.title, self.steps, self.step = title, steps, 0
        self.console = Console(stderr=True) if console is None else console
        self.history = History()
        self.alarms: list[Alarm] = []
        self._clock = clock
        self._monitor: Monitor | None = None
        self._begun: tuple[float, int] | None = None
        self._drawn = float("-inf")
        self._live: Live | None = None

    def watch(self, monitor: Monitor) -> None:
        """Take layers and the cost of looking from this Monitor."""
        self._monitor = monitor

    def progress(self, step: int, steps: int | None = None) -> None:
        """Say that so many updates are done, of so many."""
        self.step, self.steps = step, self.steps if steps is None else steps
        if self._begun is None:
            self._begun = self._clock(), step
        self._draw()

    def __call__(self, step: int, summaries: Mapping[str, float]) -> None:
        """Hear of a look: what a sink is told."""
        self.step = max(step, self.step)
        rows = None if self._monitor is None else self._monitor.latest()
        if rows is not None and len(rows):
            self.history = self.history.with_look(rows)
        if self._live is None:
            self.console.print(self._line(step, summaries), markup=False, highlight=False, soft_wrap=True)
        self._draw(now=True)

    def alarm(self, alarm: Alarm) -> None:
        """Hear of an alarm."""
        self.alarms.append(alarm)
        if self._live is None:
            self._say(alarm)
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
                self._say(alarm)

    def close(self) -> None:
        """As a sink: nothing to close, the view ends with its `with`."""

    def drawn(self) -> RenderableType:
        """The panel as it is now."""
        rows = max(3, self.console.height - _BESIDE - min(len(self.alarms), MOST_ALARMS))
        parts: list[RenderableType] = [self._bar()]
        if told := self._numbers():
            parts.append(told)
        if self.history.looks:
            parts += [Text(), layers_table(self.history, self.console.width - 4, rows)]
        for alarm in self.alarms[-MOST_ALARMS:]:
            parts.append(Text(f"⚠ {alarm.words}", style="yellow", overflow="ellipsis", no_wrap=True))
        return Panel(Group(*parts), title=self.title, title_align="left", border_style="dim")

    def _draw(self, *, now: bool = False) -> None:
        if self._live is None or (not now and self._clock() - self._drawn < BETWEEN):
            return
        self._live.update(self.drawn(), refresh=True)
        self._drawn = self._clock()

    def _bar(self) -> RenderableType:
        line = Table.grid(padding=(0, 2))
        words = [f"step {self.step:,}" + (f" of {self.steps:,}" if self.steps else "")]
        pace = self._pace()
        if pace:
            words.append(f"{number(pace)} steps/s" if pace >= 1 else f"{number(1 / pace)} s a step")
            if self.steps and self.step < self.steps:
                words.append(f"{clock_time((self.steps - self.step) / pace)} left")
        bar = [ProgressBar(total=self.steps, completed=self.step, width=_BAR)] if self.steps else []
        line.add_row(*bar, *words)
        return line

    def _pace(self) -> float:
        """Steps a second since the first that was told; 0 where that is not known yet."""
        if self._begun is None:
            return 0.0
        passed = self._clock() - self._begun[0]
        return (self.step - self._begun[1]) / passed if passed > 0 else 0.0

    def _numbers(self) -> Text | None:
        """The loop's own numbers, each with its way so far, and what looking takes."""
        parts = [
            f"{name} {number(values[-1])} {sparkline(values)}" for name, values in self.history.own.items()
        ]
        if share := self._share():
            parts.append(share)
        return Text("   ".join(parts)) if parts else None

    def _share(self) -> str:
        share = None if self._monitor is None else self._monitor.budget["share spent"]
        if not isinstance(share, float):
            return ""
        return f"looking adds {100 * share:.{0 if share >= 0.1 else 1}f} % to the time of training"

    def _line(self, step: int, summaries: Mapping[str, float]) -> str:
        """A look in one line: the loop's own numbers, then of each measure the mean over layers."""
        own = [f"{name} {number(values[-1])}" for name, values in self.history.own.items()]
        means = [
            f"{heading.replace(chr(10), ' ')} {number(value)}"
            for name, heading in MEASURES.items()
            if not pd.isna(value := summaries.get(f"isoscope/{name}/mean", float("nan")))
        ]
        of = f" of {self.steps:,}" if self.steps else ""
        return f"step {step:,}{of}: {', '.join([*own, *means])}"

    def _say(self, alarm: Alarm) -> None:
        self.console.print(
            f"alarm: {alarm.words}", style="yellow", markup=False, highlight=False, soft_wrap=True
        )


def clock_time(seconds: float) -> str:
    """Hours, minutes and seconds as a clock has them.

    >>> clock_time(75.2), clock_time(7261)
    ('1:15', '2:01:01')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
