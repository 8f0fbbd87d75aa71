"""Files that hold one picture or one recording each: those of a folder, or of a column of a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from isoscope.data.hub import column_at, files
from isoscope.errors import IsoscopeError


def files_at(address: str, suffixes: tuple[str, ...], what: str) -> Iterator[tuple[str, Path | BytesIO]]:
    """Name and path (or bytes) of each file at `address`, or below it, that is `what` by its ending."""
    if (of_dataset := column_at(address)) is not None:
        return ((name, BytesIO(content)) for name, content in files(of_dataset, what))
    place = Path(address)
    if not place.exists():
        raise IsoscopeError(f"no data at '{address}': give 'embedded', or a folder of {what}.")
    found = [place] if place.is_file() else sorted(place.rglob("*"))
    fitting = [file for file in found if file.suffix.lower() in suffixes and file.is_file()]
    if not fitting:
        raise IsoscopeError(f"'{address}' holds no {what} ({', '.join(suffixes)}); this model takes {what}.")
    return ((file.name, file) for file in fitting)
