"""An address becomes documents: plain strings, read as a stream.

`embedded` is the documentation that ships inside every Python: about 465 thousand characters of
English that need no download. It differs a little between versions of Python, so runs record a hash.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from isoscope.data.hub import column_at, texts
from isoscope.errors import IsoscopeError

_BLOCK = 1 << 16  # characters of a text file that are encoded at a time
_HEADING = re.compile(r" ?= [^=\n]+ = ?\r?\n?")  # of an article of WikiText; sections have more signs
_OPENERS: dict[str, Callable[..., IO[Any]]] = {".gz": gzip.open, ".xz": lzma.open}


def documents(address: str, *, whole: bool = True) -> Iterator[str]:
    """The texts at `address`, one after the other, as `pieces` gives them."""
    return (text for _, text in pieces(address, whole=whole)[1])


def pieces(address: str, *, whole: bool = True) -> tuple[str, Iterator[tuple[int, str]]]:
    """What a document is at `address`, and the text there in pieces, each with its document's number.

    Every record of a JSONL file is a document, and every row of a dataset. A text file is read whole, in
    blocks that end with a line. A form feed alone on a line ends a document, and where the file begins with a
    heading `` = Title = ``, as WikiText does, every such heading begins one. Blank lines separate paragraphs,
    which are not independent, so they end no document. With `whole=False` each line that is not blank is one.
    """
    if address == "embedded":
        return "help topic", enumerate(embedded())
    if (of_dataset := column_at(address)) is not None:
        return "row of a dataset", enumerate(texts(of_dataset))
    path, column = _split(address)
    if not path.exists():
        raise IsoscopeError(f"no data at '{address}': give 'embedded', a text file or a JSONL file.")
    if path.is_dir():
        raise IsoscopeError(
            f"'{address}' is a folder; this model takes text: give a single file, 'embedded', or, where the "
            f"folder is a dataset, {address}:SPLIT:COLUMN."
        )
    if ".jsonl" in path.suffixes or ".ndjson" in path.suffixes:
        return "record of a JSONL file", enumerate(_records(path, column))
    if column != "text":
        raise IsoscopeError(f"{path} is plain text and has no column '{column}'; a JSONL file has columns.")
    if whole:
        return "article under its heading, or text up to a form feed", _blocks(path)
    return "line of a text file", enumerate(line.strip() for line in _lines(path) if line.strip())


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


def _blocks(path: Path) -> Iterator[tuple[int, str]]:
    """Blocks of lines with the number of their document."""
    waiting: list[str] = []
    size = number = 0
    headed: bool | None = None  # whether the file begins with a heading
    for line in _lines(path):
        heading = _HEADING.fullmatch(line) is not None
        if headed is None and line.strip():
            headed = heading
        begins = (headed and heading) or line.strip("\r\n ") == "\f"
        if begins or size >= _BLOCK:
            if "".join(waiting).strip():
                yield number, "".join(waiting)
                waiting, size = [], 0
            number += begins
        waiting.append(line)
        size += len(line)
    if "".join(waiting).strip():
        yield number, "".join(waiting)


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
