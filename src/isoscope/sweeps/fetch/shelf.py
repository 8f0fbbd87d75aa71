"""A shelf for checkpoints from the hub: downloaded ahead of use, removed after it, within a disk budget.

Room is reserved before a download begins, in whole blocks of the disk, so that the folder never exceeds the
budget. What is in use is never removed; what lies ready gives way to what is asked for. A folder that is
whole has a note in it, written last: the next sweep takes such folders up and removes the others. Decided
here: one thread downloads, in the order of asking; a shelf belongs to one process, by a lock that ends with
it; nothing in a folder that is no shelf is ever removed.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

from isoscope.errors import IsoscopeError
from isoscope.formatting import said_size
from isoscope.models.hub import asking
from isoscope.results.store import write_whole
from isoscope.sweeps.find.checkpoints import Checkpoint
from isoscope.sweeps.find.remote import Listing, listing

_BLOCK = 4096  # of the disk
_BESIDE = 8  # blocks of a checkpoint: folders, the note, what the library keeps
_NOTE = ".whole.json"
_SHELF, _LOCK = "shelf.json", "shelf.lock"
_OWN = 2 * _BLOCK  # what those two take
_PATIENCE = 10.0  # seconds for a download that was told to stop


@dataclass
class _Place:
    """The room that a checkpoint takes, whether it has been downloaded, and whether someone uses it."""

    room: int
    ready: bool = False
    used: bool = False


class Shelf:
    """A folder that holds at most `budget` bytes of checkpoints; use it as a context, from any thread.

    `plan` is the order in which `fetch` will be asked for them, each until `done`: `ahead` of them are
    downloaded before they are.
    """

    def __init__(self, folder: Path, budget: int, plan: Sequence[Checkpoint] = (), *, ahead: int = 1) -> None:
        self.folder, self.budget, self.ahead = folder, budget, ahead
        self._changed = threading.Condition()
        self._plan = {_key(each): each for each in plan}
        self._asked: dict[str, Checkpoint] = {}  # what someone waits for
        self._listings: dict[str, Listing] = {}
        self._places: dict[str, _Place] = {}
        self._failed: dict[str, Exception] = {}
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
        key = _key(checkpoint)
        with self._changed:
            self._failed.pop(key, None)  # what went wrong ahead of time is tried again
            self._asked[key] = checkpoint
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed or key in self._failed or self._is_ready(key))
            self._asked.pop(key, None)
            if self._is_ready(key) and not self._closed:
                self._places[key].used = True
                self._changed.notify_all()
                return self._path(key)
            self._plan.pop(key, None)
            if self._closed:
                raise IsoscopeError(f"the shelf {self.folder} is closed.")
            raise self._failed.pop(key)

    def done(self, checkpoint: Checkpoint) -> None:
        """Remove a checkpoint that was fetched: it has been measured."""
        key = _key(checkpoint)
        with self._changed:
            self._plan.pop(key, None)
            if self._is_ready(key):
                self._remove(key)
            self._changed.notify_all()

    def close(self) -> None:
        """Stop downloading; what lies ready is kept for the next time, and an empty shelf is removed."""
        with self._changed:
            self._closed = True
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
            room, key = _room_taken(path), wanted.get(path)
            if key is None or room is None or room > self._free():
                shutil.rmtree(path)
            else:
                self._places[key] = _Place(room, ready=True)

    def _work(self) -> None:
        """List and download what was asked for, and between that what is next in the plan."""
        while (due := self._due()) is not None:
            key, checkpoint = due
            try:
                if key not in self._listings:
                    self._listings[key] = _listed(checkpoint, self.budget)
                    continue
                _download(checkpoint.address, self._listings[key], self._path(key), lambda: self._closed)
                with self._changed:
                    self._places[key].ready = True
                    self._changed.notify_all()
            except Exception as reason:  # noqa: BLE001  whatever it is, it is for the one who asks
                with self._changed:
                    if key in self._places:
                        self._remove(key)
                    self._failed[key] = reason
                    self._changed.notify_all()

    def _due(self) -> tuple[str, Checkpoint] | None:
        """What to see to next, with room for it where it is listed; waits for it; None once closed."""
        with self._changed:
            while not self._closed:
                ready = sum(place.ready and not place.used for place in self._places.values())
                order = self._asked | (self._plan if ready < self.ahead else {})
                left = (key for key in order if key not in self._places and key not in self._failed)
                key = next(left, None)
                if key is not None and (key not in self._listings or self._reserved(key)):
                    return key, order[key]
                self._changed.wait()
        return None

    def _reserved(self, key: str) -> bool:
        """Whether there is room for a checkpoint now; what lies ready gives way to one that was asked for."""
        room = room_of(self._listings[key])
        spare = [other for other, place in self._places.items() if place.ready and not place.used]
        if key in self._asked and room <= self._free() + sum(self._places[other].room for other in spare):
            while room > self._free():
                self._remove(spare.pop())
        if room <= self._free():
            self._places[key] = _Place(room)
        return key in self._places

    def _is_ready(self, key: str) -> bool:
        return key in self._places and self._places[key].ready

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


def room_of(found: Listing) -> int:
    """The bytes that a download takes at most: whole blocks, and a block a file for what is kept beside."""
    return _BLOCK * (_BESIDE + sum(1 - -file.size // _BLOCK for file in found.files))


def _listed(checkpoint: Checkpoint, budget: int) -> Listing:
    """What is to be downloaded; an error where it cannot be, or would never fit."""
    found = listing(checkpoint)
    if found.fault:
        raise IsoscopeError(f"'{checkpoint.name}' cannot be measured: {found.fault}")
    if room_of(found) > budget - _OWN:
        raise IsoscopeError(
            f"'{checkpoint.name}' takes {said_size(room_of(found))} of the disk and the budget is "
            f"{said_size(budget)}; give a larger --disk-budget."
        )
    return found


class _Stopped(Exception):  # noqa: N818  (what happened, not what is wrong)
    """A download was given up."""


def _download(address: str, found: Listing, folder: Path, stopped: Callable[[], bool]) -> None:
    """Download the files into `folder`, and note there that it is whole; ends early where it is stopped."""
    from huggingface_hub import hf_hub_download

    class Watch(nullcontext[Any]):
        """What the library takes for a progress bar."""

        def __init__(self, **options: object) -> None:
            super().__init__(self)

        def update(self, count: float | None = 1) -> None:
            if stopped():
                raise _Stopped

    folder.mkdir()
    for file in found.files:
        if stopped():
            raise _Stopped
        with asking(address, found.commit):
            hf_hub_download(address, file.name, revision=found.commit, local_dir=folder, tqdm_class=Watch)
        if (folder / file.name).stat().st_size != file.size:
            raise IsoscopeError(f"{file.name} of '{address}' did not come whole.")
    shutil.rmtree(folder / ".cache", ignore_errors=True)  # the library's own notes
    said = {"room": room_of(found), "files": {file.name: file.size for file in found.files}}
    write_whole(folder / _NOTE, json.dumps(said).encode())


def _room_taken(folder: Path) -> int | None:
    """The room of a download that is whole; None of one that is not."""
    try:
        said = json.loads((folder / _NOTE).read_text())
        whole = all((folder / name).stat().st_size == size for name, size in said["files"].items())
        return int(said["room"]) if whole else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _key(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.address}@{checkpoint.revision}"
