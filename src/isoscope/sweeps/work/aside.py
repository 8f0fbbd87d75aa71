"""What was half written when a sweep was killed, and is taken away when the unit is written again.

Its hidden name ends in the number of a process: it is nobody's where that is gone, or is this one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from isoscope.results.store import RunFolder

_KINDS = ("rows", "points", "samples", "fingerprints")


def clear_aside(folder: RunFolder, unit: str) -> None:
    """Take away what lies aside of this unit."""
    for kind in _KINDS:
        for aside in (folder.path / kind).glob(f".{folder.file_of(unit).stem}.*"):
            if not _is_anothers(aside):
                aside.unlink(missing_ok=True)


def _is_anothers(aside: Path) -> bool:
    """Whether a file aside is being written by another process of this machine."""
    number = aside.suffix.removeprefix(".")
    if not number.isdecimal() or int(number) == os.getpid():
        return False
    with suppress(OSError):  # one that is dead and not yet buried has the state Z
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except OSError:  # it lives, and is somebody else's
        return True
    return True
