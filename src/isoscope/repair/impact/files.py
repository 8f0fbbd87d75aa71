"""The files that repairs are judged by: pairs with scores, labelled texts, queries with their documents.

Columns are told apart by tabs, or by commas as CSV quotes them. Tabs are not quoted, as STS-B has it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from isoscope.data.documents import documents
from isoscope.errors import IsoscopeError
from isoscope.repair.impact.outcome import Array

FIRST, SECOND = ("sentence1", "text1", "first"), ("sentence2", "text2", "second")
SCORE = ("score", "similarity_score", "similarity")
HEADERS = (("label", "text"), ("label", "sentence"), ("query", "document"))  # of labelled texts, and sought
_STS = (5, 6, 4)  # sentence1, sentence2, score of STS-B's own files: genre, file, year, index before them
_TABLES = (".tsv", ".csv")

Line = tuple[int, list[str]]


def read_pairs(address: str) -> tuple[list[str], list[str], Array]:
    """Two texts and their score, a line each: three columns, with a header or not, or STS-B's own seven."""
    lines = list(_lines(address))
    if not lines:
        raise IsoscopeError(f"{address} holds no pairs.")
    head = [cell.strip().lower() for cell in lines[0][1]]
    named = [next((head.index(name) for name in names if name in head), None) for names in (FIRST, SECOND)]
    if None not in named:
        scored = next((head.index(name) for name in SCORE if name in head), None)
        if scored is None:
            raise IsoscopeError(
                f"{address} has pairs without scores: its columns are {', '.join(head)}; "
                f"one must be called {SCORE[0]}."
            )
        at, lines = (named[0], named[1], scored), lines[1:]
        if not lines:
            raise IsoscopeError(f"{address} holds no pairs: there is nothing under its header.")
    else:
        at = _places(address, lines)
    found = [_pair(address, number, cells, at) for number, cells in lines]
    first, second = [one for one, _, _ in found], [two for _, two, _ in found]
    return first, second, np.array([score for _, _, score in found])


def _places(address: str, lines: Sequence[Line]) -> tuple[int, int, int]:
    """Where the two texts and the score are, in a file without a header."""
    cells = lines[0][1]
    if len(cells) >= 7:
        return _STS
    if len(cells) == 3:
        numbers = [place for place in range(3) if all(_is_number(own[place : place + 1]) for _, own in lines)]
        if len(numbers) == 1:
            one, two = (place for place in range(3) if place not in numbers)
            return one, two, numbers[0]
        number = lines[0][0]
        raise IsoscopeError(
            f"{address} has pairs without scores: no column of its three holds a number in every line, "
            f"from line {number} on; or name them sentence1, sentence2, score in a header."
        )
    raise IsoscopeError(
        f"{address} has pairs without scores: {len(cells)} column{'s' if len(cells) > 1 else ''} where three "
        "are needed, two texts and a score."
    )


def _pair(
    address: str, number: int, cells: Sequence[str], at: tuple[int | None, int | None, int | None]
) -> tuple[str, str, float]:
    one, two, scored = (
        cells[place].strip() if place is not None and place < len(cells) else "" for place in at
    )
    if not _is_number([scored]):
        raise IsoscopeError(f"line {number} of {address} has no score: '{scored}' is no number.")
    if not one or not two:
        raise IsoscopeError(f"line {number} of {address} has an empty text; a pair has two.")
    return one, two, float(scored)


def _is_number(cells: Sequence[str]) -> bool:
    try:
        return bool(cells) and math.isfinite(float(cells[0]))
    except ValueError:
        return False


def read_labelled(address: str) -> tuple[list[str], list[str]]:
    """Labels and texts, a line each: the label, a tab, the text. A text that comes again is taken once."""
    found: dict[str, str] = {}
    for number, label, text in _two(address, "label, tab, text"):
        if found.setdefault(text, label) != label:
            raise IsoscopeError(
                f"line {number} of {address} labels a text '{label}' that was '{found[text]}' before."
            )
    return list(found.values()), list(found)


def read_sought(address: str) -> tuple[list[str], list[str]]:
    """Queries and documents, a line each: the query, a tab, a document that answers it."""
    found = [(query, document) for _, query, document in _two(address, "query, tab, document")]
    return [query for query, _ in found], [document for _, document in found]


def _two(address: str, wanted: str) -> Iterator[tuple[int, str, str]]:
    empty = True
    for number, line in enumerate(documents(address, whole=False), start=1):
        one, tab, two = line.partition("\t")
        if not tab or not one.strip() or not two.strip():
            raise IsoscopeError(f"line {number} of {address} (blank ones not counted) is not {wanted}.")
        if number == 1 and (one.strip().lower(), two.strip().lower()) in HEADERS:
            continue
        yield number, one.strip(), two.strip()
        empty = False
    if empty:
        raise IsoscopeError(f"{address} is empty; its lines are {wanted}.")


def read_texts(address: str) -> list[str]:
    """Texts to fit repairs on, each once: of a table of pairs (.tsv, .csv), else one a line or record."""
    if Path(address).suffix.lower() in _TABLES and Path(address).is_file():
        first, second, _ = read_pairs(address)
        return list(dict.fromkeys([*first, *second]))
    return list(dict.fromkeys(text.strip() for text in documents(address, whole=False) if text.strip()))


def _lines(address: str) -> Iterator[Line]:
    """The cells of every line that is not blank, with its number; a CSV's quotes may hold several lines."""
    lines = _plain(address).split("\n")  # of all that Unicode calls the end of a line the one that files have
    if "\t" in next((line for line in lines if line.strip()), ""):
        yield from ((number, line.split("\t")) for number, line in enumerate(lines, 1) if line.strip())
        return
    rows = csv.reader(f"{line}\n" for line in lines)
    begun = 1
    try:
        for row in rows:
            if any(cell.strip() for cell in row):
                yield begun, row
            begun = rows.line_num + 1
    except csv.Error as reason:
        raise IsoscopeError(f"line {rows.line_num} of {address} is no CSV: {reason}.") from reason


def _plain(address: str) -> str:
    try:
        return Path(address).read_text(encoding="utf-8-sig")
    except FileNotFoundError as reason:
        raise IsoscopeError(f"no pairs at '{address}': there is no such file.") from reason
    except UnicodeDecodeError as reason:
        raise IsoscopeError(
            f"{address} is not text in UTF-8 ({reason.reason} at byte {reason.start})."
        ) from reason
    except OSError as reason:
        raise IsoscopeError(f"cannot read {address}: {reason.strerror or reason}.") from reason
