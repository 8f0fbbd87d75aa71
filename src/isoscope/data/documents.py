"""An address becomes documents: plain strings, read as a stream.

`embedded` is the documentation that ships inside every Python: about 465 thousand characters of
English that need no download. It differs a little between versions of Python, so runs record a hash.
"""

from __future__ import annotations

import gzip
import json
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from isoscope.data.hub import column_at, texts
from isoscope.errors import IsoscopeError

_BLOCK = 1 << 16  # characters of a text file that are encoded at a time
_OPENERS: dict[str, Callable[..., IO[Any]]] = {".gz": gzip.open, ".xz": lzma.open}


def documents(address: str, *, whole: bool = True) -> Iterator[str]:
    """The documents at `address`, one after the other.

    A text file is read whole, in blocks that end with a line; with `whole=False` each line that is
    not blank is a document. Every record of a JSONL file is one, and every row of a dataset.
    """
    if address == "embedded":
        return embedded()
    if (of_dataset := column_at(address)) is not None:
        return texts(of_dataset)
    path, column = _split(address)
    if not path.exists():
        raise IsoscopeError(f"no data at '{address}': give 'embedded', a text file or a JSONL file.")
    if path.is_dir():
        raise IsoscopeError(
            f"'{address}' is a folder; this model takes text: give a single file, 'embedded', or, where the "
            f"folder is a dataset, {address}:SPLIT:COLUMN."
        )
    if ".jsonl" in path.suffixes or ".ndjson" in path.suffixes:
        return _records(path, column)
    if column != "text":
        raise IsoscopeError(f"{path} is plain text and has no column '{column}'; a JSONL file has columns.")
    return _blocks(path) if whole else (line.strip() for line in _lines(path) if line.strip())


def refuse_missing(address: str) -> None:
    """Say at once that there is no data of any kind at `address`; what a dataset has, its hub knows."""
    there = address == "embedded" or column_at(address) is not None
    if not there and not _split(address)[0].exists():
        raise IsoscopeError(
            f"no data at '{address}': give 'embedded', a file, a folder, or a column of a dataset, "
            "id:split:column."
        )


def embedded() -> Iterator[str]:
    """The help topics of Python, in the order of their names."""
    from pydoc_data.topics import topics

    for name in sorted(topics):
        yield topics[name]


def _split(address: str) -> tuple[Path, str]:
    """A path, and the column after its last colon where there is one."""
    path, colon, column = address.rpartition(":")
    if colon and not Path(address).exists() and Path(path).exists():
        return Path(path), column
    return Path(address), "text"


def _lines(path: Path) -> Iterator[str]:
    opener = _OPENERS.get(path.suffix, open)
    try:
        with opener(path, "rt", encoding="utf-8-sig") as stream:
            yield from stream
    except UnicodeDecodeError as reason:
        raise IsoscopeError(
            f"{path} is not text in UTF-8 ({reason.reason} at byte {reason.start})."
        ) from reason
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as reason:
        raise IsoscopeError(f"cannot read {path}: {reason}.") from reason


def _blocks(path: Path) -> Iterator[str]:
    waiting, size = [], 0
    for line in _lines(path):
        waiting.append(line)
        size += len(line)
        if size >= _BLOCK:
            yield "".join(waiting)
            waiting, size = [], 0
    if "".join(waiting).strip():
        yield "".join(waiting)


def _records(path: Path, column: str) -> Iterator[str]:
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as reason:
            raise IsoscopeError(f"line {number} of {path} is not JSON: {reason}.") from reason
        found = record.get(column) if isinstance(record, dict) else None
        if not isinstance(found, str):
            columns = ", ".join(sorted(record)) if isinstance(record, dict) else "none"
            raise IsoscopeError(
                f"line {number} of {path} has no text in column '{column}' (columns there: {columns}); "
                f"name another as {path}:COLUMN."
            )
        if found.strip():
            yield found
