"""`isoscope watch`: the page of a run that is being written, on this machine, until Ctrl-C.

Decided here: pages are drawn in the main thread, where a signal breaks off what is done, and requests are
answered beside it. Drawn in a thread, a page could not be broken off, and Python cannot end around it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from isoscope.cli.options import verb

if TYPE_CHECKING:
    import pandas as pd

HELP = {
    "run": "A run folder; it may not be there yet.",
    "port": "Where to listen. [default: 8765, or the next that is free]",
    "host": "The address to listen at.",
    "allow_remote": "Let --host be an address that other machines reach.",
}
_WELL = "the page shows the rows that are there."


@verb(HELP)
def watch(
    run: Path, port: Annotated[int | None, Option(min=0, max=65535)] = None, host: str = "127.0.0.1",
    allow_remote: bool = False,
) -> None:  # fmt: skip
    """Serve the page of a run that is being written: new rows appear as they land. Ctrl-C stops it."""
    from isoscope.cli.screen import terminal as screen
    from isoscope.errors import IsoscopeError

    stop = threading.Event()
    with _signals(stop), suppress(KeyboardInterrupt):
        try:
            import isoscope.show.page.page  # noqa: F401  what draws is missed now, not at the first rows
            from isoscope.show.watch.serve import answering, open_server
            from isoscope.show.watch.watch import Watch
        except ImportError as missing:
            raise IsoscopeError(f"a page cannot be made: {missing.name} is not installed.") from missing
        if run.exists() and not run.is_dir():
            raise IsoscopeError(f"{run} is a file; give the folder of a run, such as runs/demo.")
        watching = Watch(run, partial(page_text, remembered=Remembered()))
        server = open_server(watching, host, port, allow_remote=allow_remote)
        with answering(server):
            if server.is_remote:
                screen.warn([f"whoever reaches {server.url} can read this page: it asks for no password"])
            screen.say(f"watching {run} at {server.url} (Ctrl-C stops)")
            watching.keep_looking(stop, lambda trouble: screen.say(trouble or _WELL))
    screen.say("stopped watching; the run itself is as it was.")


@dataclass(frozen=True)
class Remembered:
    """Reads files of a run folder (10 ms each); one that has kept its size and time is not read again."""

    kept: dict[Path, tuple[tuple[int, int], tuple[pd.DataFrame, dict[str, object]]]] = field(
        default_factory=dict
    )

    def __call__(self, file: Path, columns: dict[str, str]) -> tuple[pd.DataFrame, dict[str, object]]:
        """What the file holds."""
        from isoscope.results.store import read_unit

        try:
            stat = file.stat()
        except OSError:
            return read_unit(file, columns)  # which says what is wrong with it
        state = stat.st_size, stat.st_mtime_ns
        if file not in self.kept or self.kept[file][0] != state:
            self.kept[file] = state, read_unit(file, columns)
        table, known = self.kept[file][1]
        return table, dict(known)


def page_text(path: Path, remembered: Remembered) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    from isoscope.kinds.report import page_of
    from isoscope.results.store import read_run

    return page_of(read_run(path, remembered))


@contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM ends what is done, a page half drawn too; then they do what they did."""

    def end(*_: object) -> None:
        if not stop.is_set():  # a second one does not break off the ending
            stop.set()
            raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, what in before.items():
            signal.signal(number, what)
