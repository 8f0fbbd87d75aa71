"""A shelf for checkpoints from the hub: downloaded ahead, taken away when done, never more than fits.

Room is taken before a download begins, for all of it, in whole blocks of the disk and with what the library
writes beside, so that there is never more on the disk than the budget. What is in use is never taken away;
what lies ready and is not yet used gives way to what is asked for first. A folder that is whole has a note
in it, written last: the next sweep takes such folders up and clears the others.

Decided here: one thread downloads, in the order of asking, as the line to the hub is one; a shelf belongs to
one process at a time, held by a lock that ends with the process; and nothing in a folder that is no shelf is
ever removed.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from filelock import FileLock, Timeout

from isoscope.errors import IsoscopeError
from isoscope.results.store import write_whole
from isoscope.sweeps.fetch.downloads import BLOCK, download, room_of, room_taken
from isoscope.sweeps.find.checkpoints import Checkpoint
from isoscope.sweeps.find.remote import Listing, listing

_SHELF, _LOCK = "shelf.json", "shelf.lock"
_OWN = 2 * BLOCK  # what those two take
_COMING, _READY, _USED = "coming", "ready", "used"
_PATIENCE = 10.0  # seconds for a download that was told to stop


@dataclass
class _Place:
    """A checkpoint that is on the shelf or on its way, and the room it takes."""

    checkpoint: Checkpoint
    room: int
    state: str = _COMING
    unwanted: bool = False


@dataclass
class _Order:
    """A checkpoint that someone waits for."""

    checkpoint: Checkpoint
    answer: Future[Path] = field(default_factory=Future)


class Shelf:
    """A folder that holds at most `budget` bytes of checkpoints; use it as a context, from any thread.

    `plan` is the order in which they will be asked for: `ahead` of them are downloaded before they are.

        with Shelf(folder, 50 * 10**9, plan) as shelf:
            for checkpoint in plan:
                path = shelf.fetch(checkpoint)
                …
                shelf.done(checkpoint)
    """

    def __init__(self, folder: Path, budget: int, plan: Sequence[Checkpoint] = (), *, ahead: int = 1) -> None:
        self.folder, self.budget, self.ahead = folder, budget, ahead
        self._changed = threading.Condition()
        self._plan = {_key(each): each for each in plan}
        self._places: dict[str, _Place] = {}
        self._orders: dict[str, _Order] = {}
        self._listings: dict[str, Listing | Exception] = {}
        self._closed = False
        self._lock = self._hold()
        try:
            self._take_up()
        except BaseException:
            self._lock.release()
            raise
        self._thread = threading.Thread(target=self._work, name="shelf", daemon=True)
        self._thread.start()

    def fetch(self, checkpoint: Checkpoint) -> Path:
        """Where the checkpoint lies; waits for its download, and for room that others give back."""
        return self.ask(checkpoint).result()

    def ask(self, checkpoint: Checkpoint) -> Future[Path]:
        """The same without waiting, for a caller that has to look after others meanwhile."""
        key = _key(checkpoint)
        with self._changed:
            if self._closed:
                raise self._shut()
            if key not in self._orders:
                self._orders[key] = _Order(checkpoint)
                if isinstance(self._listings.get(key), Exception):
                    del self._listings[key]  # what went wrong ahead of time is tried again
                self._deliver(key)
                self._changed.notify_all()
            return self._orders[key].answer

    def done(self, checkpoint: Checkpoint) -> None:
        """Take the checkpoint off the shelf: it has been measured, or is not wanted any more."""
        key = _key(checkpoint)
        with self._changed:
            self._plan.pop(key, None)
            if (order := self._orders.pop(key, None)) is not None and not order.answer.done():
                order.answer.set_exception(IsoscopeError(f"'{checkpoint.name}' is not wanted any more."))
            if (place := self._places.get(key)) is not None:
                place.unwanted = True
                if place.state != _COMING:
                    self._remove(key)
            self._changed.notify_all()

    def close(self) -> None:
        """Stop downloading; what lies ready is kept for the next time, and an empty shelf is removed."""
        with self._changed:
            self._closed = True
            for order in self._orders.values():
                if not order.answer.done():
                    order.answer.set_exception(self._shut())
            self._changed.notify_all()
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():  # the lock ends with the process, and the next sweep clears up
            return
        empty = not self._folders()
        if empty:
            (self.folder / _SHELF).unlink(missing_ok=True)
        self._lock.release()
        with suppress(OSError):
            if empty:
                (self.folder / _LOCK).unlink(missing_ok=True)
                self.folder.rmdir()

    def __enter__(self) -> Shelf:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, reason: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _hold(self) -> FileLock:
        """Make the folder, or take up one that is a shelf; and lock it."""
        refused = f"cannot keep checkpoints in {self.folder}: "
        try:
            there = {each.name for each in self.folder.iterdir()} if self.folder.is_dir() else set()
            if there - {_LOCK} and _SHELF not in there:
                raise IsoscopeError(f"{refused}it holds other files; name another folder.")
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / _LOCK, thread_local=False)
            lock.acquire(timeout=0)
        except Timeout as reason:
            raise IsoscopeError(
                f"another sweep keeps its checkpoints in {self.folder}; wait for it, or name another folder."
            ) from reason
        except OSError as reason:
            raise IsoscopeError(f"{refused}{reason.strerror or reason}.") from reason
        write_whole(self.folder / _SHELF, b'{"shelf": "checkpoints of a sweep"}\n')
        return lock

    def _take_up(self) -> None:
        """Keep what an earlier sweep left whole and this one needs, and clear the rest."""
        wanted = {self._path(key): key for key in self._plan}
        for path in self._folders():
            room, key = room_taken(path), wanted.get(path)
            if key is None or room is None or room > self._free():
                shutil.rmtree(path)
            else:
                self._places[key] = _Place(self._plan[key], room, _READY)

    def _work(self) -> None:
        """Download what was asked for, and between that what is next in the plan."""
        while True:
            with self._changed:
                while not self._closed and (key := self._next()) is None:
                    self._changed.wait()
                if self._closed:
                    return
                assert key is not None
                order = self._orders.get(key)
                checkpoint = self._plan[key] if order is None else order.checkpoint
                found = self._listings.get(key)
            try:
                if found is None:
                    self._listings[key] = _listed(checkpoint, self.budget)
                elif isinstance(found, Exception):
                    raise found
                else:
                    self._bring(key, checkpoint, found)
            except Exception as reason:  # noqa: BLE001  whatever it is, it is for the one who asked
                self._failed(key, reason)

    def _next(self) -> str | None:
        """What to see to: the first that someone waits for, or else the next in the plan."""
        waiting = next((key for key in self._orders if key not in self._places and self._waits(key)), None)
        if waiting is not None:
            found = self._listings.get(waiting)
            if not isinstance(found, Listing) or self._make_way(room_of(found)):
                return waiting
            return None
        if sum(place.state == _READY for place in self._places.values()) >= self.ahead:
            return None
        for key in self._plan:
            found = self._listings.get(key)
            if key in self._places or key in self._orders or isinstance(found, Exception):
                continue
            return key if found is None or room_of(found) <= self._free() else None
        return None

    def _waits(self, key: str) -> bool:
        return not self._orders[key].answer.done()

    def _make_way(self, room: int) -> bool:
        """Whether there is room now; what nobody asked for yet gives way, the last in the plan first."""
        order = {key: number for number, key in enumerate(self._plan)}
        ready = [key for key, place in self._places.items() if place.state == _READY]
        if room > self._free() + sum(self._places[key].room for key in ready):
            return False
        ready.sort(key=lambda key: order.get(key, len(order)))
        while room > self._free():
            self._remove(ready.pop())
        return True

    def _bring(self, key: str, checkpoint: Checkpoint, found: Listing) -> None:
        place = _Place(checkpoint, room_of(found))
        with self._changed:
            if place.room > self._free() or self._closed:
                return  # it is looked for again
            self._places[key] = place
        try:
            download(checkpoint.address, found, self._path(key), lambda: self._closed or place.unwanted)
        except BaseException:
            with self._changed:
                self._remove(key)
            raise
        with self._changed:
            place.state = _READY
            if place.unwanted:
                self._remove(key)
            self._deliver(key)
            self._changed.notify_all()

    def _failed(self, key: str, reason: Exception) -> None:
        with self._changed:
            order = self._orders.pop(key, None)
            if order is None:
                self._listings[key] = reason
            else:
                self._listings.pop(key, None)
                if not order.answer.done():
                    order.answer.set_exception(reason)
            self._changed.notify_all()

    def _deliver(self, key: str) -> None:
        """Hand over what lies ready to the one who waits."""
        place, order = self._places.get(key), self._orders.get(key)
        if place is not None and order is not None and place.state == _READY and not order.answer.done():
            place.state = _USED
            order.answer.set_result(self._path(key))

    def _remove(self, key: str) -> None:
        shutil.rmtree(self._path(key), ignore_errors=True)
        del self._places[key]  # only now is there room

    def _free(self) -> int:
        return self.budget - _OWN - sum(place.room for place in self._places.values())

    def _path(self, key: str) -> Path:
        plain = re.sub(r"[^A-Za-z0-9]+", "-", key).strip("-")[-48:]
        return self.folder / f"{plain}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"

    def _folders(self) -> list[Path]:
        return sorted(each for each in self.folder.iterdir() if each.is_dir())

    def _shut(self) -> IsoscopeError:
        return IsoscopeError(f"the shelf {self.folder} is closed.")


def _listed(checkpoint: Checkpoint, budget: int) -> Listing:
    """What is to be downloaded; an error where it cannot be, or would never fit."""
    found = listing(checkpoint)
    if found.fault:
        raise IsoscopeError(f"'{checkpoint.name}' cannot be measured: {found.fault}")
    if room_of(found) > budget - _OWN:
        raise IsoscopeError(
            f"'{checkpoint.name}' takes {_size(room_of(found))} of the disk and the budget is "
            f"{_size(budget)}; give a larger --disk-budget."
        )
    return found


def _size(count: int) -> str:
    """In the largest unit that it has one of.

    >>> _size(1_500_000_000), _size(40_960), _size(12)
    ('1.5 GB', '41 kB', '12 bytes')
    """
    for unit, bytes_ in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= bytes_:
            return f"{count / bytes_:.3g} {unit}"
    return f"{count} bytes"


def _key(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.address}@{checkpoint.revision}"
