"""Characters as tokens: the smallest tokenizer there is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Characters:
    """An alphabet; every character of a text is a token, one that is not in the alphabet is left out."""

    alphabet: str
    all_special_ids: list[int] = field(default_factory=list)
    pad_token_id: int | None = None

    @classmethod
    def of(cls, texts: Iterable[str]) -> Characters:
        """The characters that occur.

        >>> Characters.of(["abba", "c"])("cab")["input_ids"]
        [2, 0, 1]
        """
        return cls("".join(sorted(set().union(*texts))))

    def __call__(
        self, text: str, *, add_special_tokens: bool = False, verbose: bool = False
    ) -> dict[str, list[int]]:
        """Encode one text."""
        return {"input_ids": [self._numbers[letter] for letter in text if letter in self._numbers]}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {letter: number for number, letter in enumerate(self.alphabet)}
