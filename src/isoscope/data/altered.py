"""A text for a model that takes it in another way: the same sequences, each batch changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from isoscope.data.batch import Batch
from isoscope.data.text import Text


@dataclass(frozen=True)
class Altered:
    """A text, batched as it is, each batch changed; `said` is what a run records beside the text's facts."""

    text: Text
    change: Callable[[Batch], Batch]
    said: Mapping[str, object]

    @property
    def size(self) -> int:
        """How many sequences."""
        return self.text.size

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know."""
        return self.text.notes

    def __len__(self) -> int:
        return len(self.text)

    def __iter__(self) -> Iterator[Batch]:
        return map(self.change, self.text)

    def facts(self) -> dict[str, object]:
        """What a run records of its data."""
        return {**self.text.facts(), **self.said}


def in_blocks(text: Text) -> Altered:
    """For a model that forms its own positions (MANTa): every one of the encoder counts, none is a token's.

    Those of its decoder, which reads the tokens, count as they do in the text.
    """
    counting = {**text.policy.describe(), "blocks": "counted"}
    return Altered(text, lambda batch: replace(batch, counts=None), {"counting": counting})
