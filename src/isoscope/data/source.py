"""What every kind of data offers, whatever it is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from isoscope.data.batch import Batch

KINDS = (  # address, what models take, what it is
    ("embedded", "text", "Python's own help, about 465 thousand characters of English"),
    ("embedded", "images", "scikit-learn's 1,797 handwritten digits"),
    ("embedded", "sound", "64 synthesised sounds of one second"),
    ("FILE", "text", "plain text, also .gz and .xz; packed into chunks, or --no-pack for a line a sequence"),
    ("FILE.jsonl:COLUMN", "text", "one document a record; the column is 'text' unless named"),
    ("FOLDER", "images", "every picture below it"),
    ("FOLDER", "sound", "every recording below it, made mono and brought to the model's rate"),
    ("ID:SPLIT:COLUMN", "all", "a dataset of the hub, streamed, or of a folder; ID@CONFIG has a config"),
)


@runtime_checkable
class Data(Protocol):
    """Sequences that are iterated over as batches, with their number, what is known of them, and remarks."""

    @property
    def size(self) -> int:
        """How many sequences."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know, such as what was left out."""
        ...

    def __iter__(self) -> Iterator[Batch]: ...

    def facts(self) -> dict[str, object]:
        """What a run records."""
        ...
