"""One revision of a hub model on the disk: how much room it takes, its download, and whether it is whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from isoscope.errors import IsoscopeError
from isoscope.results.store import write_whole
from isoscope.sweeps.find.remote import Listing, asking

BLOCK = 4096  # of the disk
_BESIDE = 8  # blocks: folders, the note, what the library keeps
_NOTE = ".whole.json"


class Stopped(Exception):  # noqa: N818  (what happened, not what is wrong)
    """A download was given up."""


def room_of(found: Listing) -> int:
    """The bytes that a download takes at most: whole blocks, and a block a file for what is kept beside."""
    return BLOCK * (_BESIDE + sum(1 - -file.size // BLOCK for file in found.files))


def download(address: str, found: Listing, folder: Path, stopped: Callable[[], bool]) -> None:
    """Bring the files into `folder`, and note there that it is whole; `stopped` is asked along the way."""
    from huggingface_hub import hf_hub_download

    folder.mkdir()
    for file in found.files:
        if stopped():
            raise Stopped
        with asking(address, found.commit):
            hf_hub_download(
                address, file.name, revision=found.commit, local_dir=folder, tqdm_class=_watched(stopped)
            )
        if (folder / file.name).stat().st_size != file.size:
            raise IsoscopeError(f"{file.name} of '{address}' did not come whole.")
    shutil.rmtree(folder / ".cache", ignore_errors=True)  # the library's own notes
    said = {"commit": found.commit, "room": room_of(found), "files": {f.name: f.size for f in found.files}}
    write_whole(folder / _NOTE, json.dumps(said).encode())


def room_taken(folder: Path) -> int | None:
    """The room of a download that is whole; None of one that is not."""
    try:
        said = json.loads((folder / _NOTE).read_text())
        whole = all((folder / name).stat().st_size == size for name, size in said["files"].items())
        return int(said["room"]) if whole else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def commit_at(folder: Path) -> str:
    """The commit that a download is of; empty where the folder is none."""
    try:
        return str(json.loads((folder / _NOTE).read_text())["commit"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _watched(stopped: Callable[[], bool]) -> type:
    """What the library takes for a progress bar: it shows nothing, and ends a download that is stopped."""

    class Watch:
        def __init__(self, **options: object) -> None:
            pass

        def __enter__(self) -> Watch:
            return self

        def __exit__(
            self, kind: type[BaseException] | None, reason: BaseException | None, trace: TracebackType | None
        ) -> None:
            pass

        def update(self, count: float | None = 1) -> None:
            if stopped():
                raise Stopped

    return Watch
