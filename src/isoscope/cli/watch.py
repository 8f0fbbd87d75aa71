"""`isoscope watch`: the page of a run that is being written, on this machine, until Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

_OFTEN = 0.5  # seconds between two looks at what there is to say
_PATIENCE = 2.0  # seconds that a page may take to be finished when nobody wants it any more


def watch(
    run: Annotated[Path, typer.Argument(help="A run folder; it may not be there yet.")],
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Where to listen. [default: 8765, or the next that is free]"),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let --host be an address that other machines reach.")
    ] = False,
) -> None:
    """Serve the page of a run that is being written: new rows appear as they land. Ctrl-C stops it."""
    with _stopped_by_signals() as stop:
        from isoscope.cli import screen
        from isoscope.cli.page_text import page_text
        from isoscope.errors import IsoscopeError

        try:
            import isoscope.report.page  # noqa: F401  what draws is missed now, not at the first rows
            from isoscope.report.serve import open_server
            from isoscope.report.watch import Watch
        except ImportError as missing:
            raise IsoscopeError(f"a page cannot be made: {missing.name} is not installed.") from missing
        if run.exists() and not run.is_dir():
            raise IsoscopeError(f"{run} is a file; give the folder of a run, such as runs/demo.")
        watching = Watch(run, partial(page_text, remembered={}))
        with open_server(watching, host, port, allow_remote=allow_remote) as server:
            if server.is_remote:
                screen.warn([f"whoever reaches {server.url} can read this page: it asks for no password"])
            screen.say(f"watching {run} at {server.url} (Ctrl-C stops)")
            _beside(server.serve_forever, 0.1)
            looking = _beside(watching.keep_looking, stop)
            told = ""
            while not stop.wait(_OFTEN):
                now = watching.trouble
                if now != told:
                    screen.say(now or "the page shows the rows that are there.")
                    told = now
            server.shutdown()
        screen.say("stopped watching; the run itself is as it was.")
        looking.join(_PATIENCE)
        if looking.is_alive():  # in the middle of a page: Python can hang when it ends around such a thread
            sys.stdout.flush()
            os._exit(0)


def _beside(work: Callable[..., None], given: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=(given,), daemon=True)
    thread.start()
    return thread


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set; what they did before is put back at the end."""
    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, what in before.items():
            signal.signal(number, what)
