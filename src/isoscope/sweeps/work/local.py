"""Units on this machine: in processes of its own, each computing with the same number of threads.

A thread of this process minds each worker: it takes the next unit, hands it over and waits. A worker that
dies costs its unit one more try in a fresh process; the second death is a row. What is asked to stop stops at
once: every file is whole or not there, and the same command goes on.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection, get_context
from multiprocessing.context import SpawnProcess

from isoscope.errors import IsoscopeError
from isoscope.sweeps.work.job import Job, Outcome
from isoscope.sweeps.work.worker import serve

TRIES = 2


@dataclass(frozen=True)
class Started:
    """A unit has been taken up."""

    unit: str


Event = Started | Outcome


@dataclass(frozen=True)
class Slot:
    """Room for one unit at a time: `measure` waits for it, `stop` ends it from another thread."""

    measure: Callable[[Job], Outcome]
    stop: Callable[[], None]


class Stopped(Exception):  # noqa: N818  (what happened, not what is wrong)
    """The sweep was stopped while a unit was being measured."""


def here(jobs: Iterable[Job], measure: Callable[[Job], Outcome]) -> Iterator[Event]:
    """The units one after the other, in this process."""
    for job in jobs:
        yield Started(job.checkpoint.unit)
        yield measure(job)


def processes(workers: int, threads: int) -> list[Slot]:
    """So many workers; each is started with its first unit."""
    made = [Worker(threads) for _ in range(workers)]
    return [Slot(each.measure, each.stop) for each in made]


def in_slots(jobs: Iterable[Job], slots: Sequence[Slot]) -> Iterator[Event]:
    """What becomes of the units, as it becomes known; each slot takes the next when it is free."""
    waiting, turn = iter(jobs), threading.Lock()
    told: queue.SimpleQueue[Event | BaseException | None] = queue.SimpleQueue()
    over = threading.Event()

    def mind(slot: Slot) -> None:
        try:
            while not over.is_set():
                with turn:
                    job = next(waiting, None)
                if job is None:
                    break
                told.put(Started(job.checkpoint.unit))
                told.put(slot.measure(job))
        except BaseException as reason:  # noqa: BLE001  it is raised where the units are waited for
            told.put(reason)
        finally:
            told.put(None)

    minders = [threading.Thread(target=mind, args=(slot,), daemon=True) for slot in slots]
    for minder in minders:
        minder.start()
    at_work = len(minders)
    try:
        while at_work:
            event = told.get()
            if event is None:
                at_work -= 1
            elif isinstance(event, BaseException):
                raise event
            else:
                yield event
    finally:
        over.set()
        for slot in slots:
            slot.stop()
        for minder in minders:
            minder.join(timeout=1.0)  # one that waits for a download ends with this process


class Worker:
    """A process that measures one unit after the other, and another one where it has died."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._process: SpawnProcess | None = None
        self._pipe: connection.Connection | None = None
        self._stopped = False

    def measure(self, job: Job) -> Outcome:
        """Have one unit measured; after the second death of its process it is a failed one."""
        for _ in range(TRIES):
            pipe = self._started()
            try:
                pipe.send(job)
                answer = pipe.recv()
            except (EOFError, OSError):
                ending = self._ended()
                continue
            if isinstance(answer, IsoscopeError):
                raise answer
            assert isinstance(answer, Outcome)
            return answer
        from isoscope.sweeps.work.unit import fail

        return fail(job, f"the process that measured it {ending}, {TRIES} times")

    def stop(self) -> None:
        """End the process, whatever it does; who waits for it finds the pipe closed."""
        self._stopped = True
        if (process := self._process) is not None:
            process.kill()
            process.join()

    def _started(self) -> connection.Connection:
        if self._stopped:
            raise Stopped
        if self._pipe is None:
            spawn = get_context("spawn")  # a fork of a process with threads, as torch has them, may hang
            self._pipe, theirs = spawn.Pipe()
            self._process = spawn.Process(target=serve, args=(theirs, self._threads), daemon=True)
            self._process.start()
            theirs.close()  # so that its death closes the pipe
        return self._pipe

    def _ended(self) -> str:
        """Take leave of a process; gives how it ended."""
        process, pipe = self._process, self._pipe
        self._process = self._pipe = None
        if process is None or pipe is None:
            return "was stopped"
        process.join()
        pipe.close()
        return _ending(process.exitcode or 0)


def _ending(code: int) -> str:
    """How a process ended, in words.

    >>> _ending(-9), _ending(1)
    ('was killed (SIGKILL), perhaps for want of memory', 'ended by itself with code 1')
    """
    if code >= 0:
        return f"ended by itself with code {code}"
    want = ", perhaps for want of memory" if -code == signal.SIGKILL else ""
    return f"was killed ({signal.Signals(-code).name}){want}"
