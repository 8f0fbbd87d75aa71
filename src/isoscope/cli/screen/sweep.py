"""A sweep as the terminal shows it, on stderr: what is wrong with its checkpoints, and each unit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from isoscope.cli.screen import terminal
from isoscope.kinds.screen import Column, Table, headed
from isoscope.kinds.sweep.make import Watching
from isoscope.sweeps.find.checkpoints import Checkpoint
from isoscope.sweeps.verify.integrity import Finding
from isoscope.sweeps.verify.order import ENOUGH
from isoscope.sweeps.work.job import Outcome
from isoscope.sweeps.work.local import Event, Started

MOST_FINDINGS = 40  # lines of the table; rows and page have all


def show_integrity(
    checkpoints: Sequence[Checkpoint], findings: Sequence[Finding], listed: bool = False
) -> None:
    """The checkpoints that are not what they should be, or a sentence that all are; `listed`: on the hub."""
    count = f"{len(checkpoints)} checkpoint{'s' * (len(checkpoints) != 1)}"
    if not findings:
        ordered = len({each.step for each in checkpoints} - {None}) >= ENOUGH
        known = ["no two are the same"] if len(checkpoints) > 1 else []
        known += [] if listed else ["none is broken"] if len(checkpoints) > 1 else ["it is not broken"]
        if ordered:
            known.append("their order is known once they are here" if listed else "all are in order")
        terminal.say(": ".join(filter(None, [count, ", ".join(known)])), stderr=True)
        return
    wrong, more = len({each.checkpoint for each in findings}), len(findings) - MOST_FINDINGS
    lines = tuple(
        ("" if each.step is None else str(each.step), each.checkpoint, each.kind, each.words)
        for each in findings[:MOST_FINDINGS]
    )
    columns = (Column("step"), *headed(("checkpoint", "what", "why"), folds=True))
    title = f"{wrong} of {count} are not what they should be"
    caption = f"and {more} more; the page has all" if more > 0 else ""
    terminal.show(Table(columns, lines, title, caption, boxed=False), stderr=True)


@contextmanager
def units(title: str, total: int, there: int) -> Iterator[Callable[[Event], None]]:
    """Hear of units: a line for each that is done, a bar that names those in work, and a summary."""
    begun, outcomes, in_work = time.monotonic(), list[Outcome](), list[str]()
    with terminal.bar(title) as progress:

        def tell(event: Event) -> None:
            if isinstance(event, Started):
                in_work.append(event.unit)
            else:
                outcomes.append(event)
                in_work[:] = [unit for unit in in_work if unit != event.unit]
                became = f"failed: {event.failed}" if event.failed else f"{event.rows} rows"
                place = f"{there + len(outcomes)} of {total}"
                terminal.say(f"{place}: {event.unit}, {became}, {event.seconds:.1f} s", stderr=True)
            progress(there + len(outcomes), total, ", ".join(in_work))

        yield tell
    failed = [each for each in outcomes if each.failed]
    took = timedelta(seconds=round(time.monotonic() - begun))
    words = [f"{len(outcomes) - len(failed)} of {total} checkpoints measured in {took}"]
    words += [f"{there} were there already"] if there else []
    words += [f"{len(failed)} failed, and the same command tries them again"] if failed else []
    terminal.say(", ".join(words), stderr=True)
    for each in failed:
        terminal.say(f"failed: {each.unit}: {each.failed}", stderr=True, style="yellow")


WATCHING = Watching(terminal.TELLING, show_integrity, units)
"""A sweep, shown in the terminal."""
