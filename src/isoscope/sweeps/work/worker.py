"""A worker of a sweep: it answers units, and settles its threads before anything heavy is imported."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from multiprocessing import connection, parent_process

from isoscope.errors import IsoscopeError
from isoscope.sweeps.work.threads import set_before_import


def serve(pipe: connection.Connection, threads: int) -> None:
    """Answer units with outcomes until nobody asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who minds the workers
    set_before_import(threads)
    threading.Thread(target=end_with_parent, daemon=True).start()
    from isoscope.sweeps.work.unit import measure_one

    with suppress(EOFError, OSError):
        while True:
            job = pipe.recv()
            try:
                answer: object = measure_one(job)
            except Exception as reason:  # noqa: BLE001  a run folder that cannot be written to, or a defect
                answer = reason if isinstance(reason, IsoscopeError) else IsoscopeError(repr(reason))
            pipe.send(answer)


def end_with_parent() -> None:
    """End when the process that minds this one is gone: another may be about to take up its units."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
