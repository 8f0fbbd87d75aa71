"""The files of a folder that have one of these endings, in the order of their names."""

from __future__ import annotations

from pathlib import Path

from isoscope.errors import IsoscopeError


def files_in(address: str, suffixes: tuple[str, ...], what: str) -> list[Path]:
    """All files below `address` that are `what` by their ending; a single file is itself."""
    place = Path(address)
    if not place.exists():
        raise IsoscopeError(f"no data at '{address}': give 'embedded', or a folder of {what}.")
    found = [place] if place.is_file() else sorted(place.rglob("*"))
    files = [file for file in found if file.suffix.lower() in suffixes and file.is_file()]
    if not files:
        raise IsoscopeError(f"'{address}' holds no {what} ({', '.join(suffixes)}); this model takes {what}.")
    return files
