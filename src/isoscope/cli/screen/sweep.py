"""A sweep as the terminal shows it: what is wrong with its checkpoints, its units while they are measured.

Everything goes to stderr. Where that is a terminal, a table of the units is drawn while they are measured;
elsewhere each unit is one line when it is done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from isoscope.cli.screen.live import clock_time
from isoscope.cli.screen.terminal import TELLING
from isoscope.kinds.sweep.make import Watching
from isoscope.sweeps.find.checkpoints import Checkpoint
from isoscope.sweeps.verify.integrity import Finding
from isoscope.sweeps.verify.order import ENOUGH
from isoscope.sweeps.work.job import Outcome
from isoscope.sweeps.work.local import Event, Started

MOST_FINDINGS = 40  # lines of the table; rows and page have all
_BESIDE = 7  # lines of the panel that are no units
_BAR = 28


def show_integrity(
    checkpoints: Sequence[Checkpoint], findings: Sequence[Finding], listed: bool = False
) -> None:
    """The checkpoints that are not what they should be, or a sentence that all are.

    Of those that are only `listed` by the hub, and not yet here, the order is not known; of few that have
    steps it never is.
    """
    console = Console(stderr=True)
    count = f"{len(checkpoints)} checkpoint{'s' * (len(checkpoints) != 1)}"
    if not findings:
        ordered = len({each.step for each in checkpoints} - {None}) >= ENOUGH
        known = ["no two are the same"] if len(checkpoints) > 1 else []
        known += [] if listed else ["none is broken"] if len(checkpoints) > 1 else ["it is not broken"]
        if ordered:
            known.append("their order is known once they are here" if listed else "all are in order")
        console.print(": ".join(filter(None, [count, ", ".join(known)])), highlight=False)
        return
    wrong = len({finding.checkpoint for finding in findings})
    more = len(findings) - MOST_FINDINGS
    table = Table(
        title=f"{wrong} of {count} are not what they should be",
        title_justify="left",
        caption=f"and {more} more; the page has all" if more > 0 else None,
        box=SIMPLE_HEAD,
        show_edge=False,
    )
    table.add_column("step", justify="right", no_wrap=True)
    for head in ("checkpoint", "what", "why"):
        table.add_column(head)
    for each in findings[:MOST_FINDINGS]:
        step = "" if each.step is None else str(each.step)
        table.add_row(step, Text(each.checkpoint), each.kind, Text(each.words))
    if not console.is_terminal:
        console = Console(stderr=True, width=140)
    console.print(table)


class SweepView:
    """Units as they are taken up and come in; use it as a context, and tell it every event."""

    def __init__(
        self,
        title: str,
        *,
        total: int,
        there: int = 0,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.title, self.total, self.there = title, total, there
        self.console = Console(stderr=True) if console is None else console
        self.outcomes: list[Outcome] = []
        self._clock, self._begun = clock, clock()
        self._underway: dict[str, float] = {}
        self._live: Live | None = None

    def tell(self, event: Event) -> None:
        """Hear that a unit was taken up, or what became of it."""
        if isinstance(event, Started):
            self._underway[event.unit] = self._clock()
            return
        self._underway.pop(event.unit, None)
        self.outcomes.append(event)
        if self._live is None:
            self.console.print(self._line(event), markup=False, highlight=False, soft_wrap=True)

    def drawn(self) -> RenderableType:
        """The panel as it is now."""
        room = max(3, self.console.height - _BESIDE)
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
        table.add_column("step", justify="right", no_wrap=True)
        for head in ("checkpoint", "", "time"):
            table.add_column(head, no_wrap=True, overflow="ellipsis")
        now = self._clock()
        for done in self.outcomes[len(self._underway) - room :] if room > len(self._underway) else []:
            step = "" if done.step is None else str(done.step)
            what = (
                Text(f"failed: {done.failed}", "red") if done.failed else Text(f"{done.rows} rows", "green")
            )
            table.add_row(step, Text(done.unit), what, f"{done.seconds:.1f} s")
        for unit, since in list(self._underway.items())[:room]:
            table.add_row("", Text(unit), Text("in work", "cyan"), f"{now - since:.0f} s")
        return Panel(Group(self._bar(now), table), title=self.title, title_align="left", border_style="dim")

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live = Live(
                console=self.console, get_renderable=self.drawn, refresh_per_second=2, transient=True
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def show_summary(self) -> None:
        """Say what the sweep came to: how many were measured, and which were not and why."""
        failed = [each for each in self.outcomes if each.failed]
        took = clock_time(self._clock() - self._begun)
        words = [f"{len(self.outcomes) - len(failed)} of {self.total} checkpoints measured in {took}"]
        words += [f"{self.there} were there already"] if self.there else []
        words += [f"{len(failed)} failed, and the same command tries them again"] if failed else []
        self.console.print(", ".join(words), highlight=False, soft_wrap=True)
        for each in failed:
            line = f"failed: {each.unit}: {each.failed}"
            self.console.print(line, style="yellow", markup=False, highlight=False, soft_wrap=True)

    def _bar(self, now: float) -> RenderableType:
        done, asked = len(self.outcomes), self.total - self.there
        words = [f"{done} of {asked}"] + ([f"{self.there} were there"] if self.there else [])
        if 0 < done < asked:
            words.append(f"{clock_time((now - self._begun) / done * (asked - done))} left")
        line = Table.grid(padding=(0, 2))
        line.add_row(ProgressBar(total=max(asked, 1), completed=done, width=_BAR), *words)
        return line

    def _line(self, done: Outcome) -> str:
        what = f"failed: {done.failed}" if done.failed else f"{done.rows} rows"
        place = f"{self.there + len(self.outcomes)} of {self.total}"
        return f"{place}: {done.unit}, {what}, {done.seconds:.1f} s"


@contextmanager
def _units(title: str, total: int, there: int) -> Iterator[Callable[[Event], None]]:
    """A view of the units while they are measured, and its summary once all are."""
    with SweepView(title, total=total, there=there) as view:
        yield view.tell
    view.show_summary()


WATCHING = Watching(TELLING, show_integrity, _units)
"""A sweep, shown in the terminal."""
