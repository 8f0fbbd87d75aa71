"""Words as their characters, for a model that has no vocabulary: CharacterBERT, and ELMo before it.

Text is cut as BERT cuts it before its word pieces: lower case, no accents, every sign of punctuation alone. A
word is 50 numbers: a mark that it begins, its bytes in UTF-8 (at most 48), a mark that it ends, padding; each
one more than the byte or mark, because 0 is where there is no word. So the model's authors number them:
github.com/helboukkouri/character-bert at ed7c5262, `character_indexer.py`.

A word's token is a hash of it, so that the same text has the same tokens in any data.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from isoscope.data.batch import Batch
from isoscope.data.text import Text

LONGEST = 50  # characters of a word, with both marks
_BEGINS, _ENDS, _EMPTY = 258, 259, 260
_MARKED = {"[CLS]": 256, "[SEP]": 257}  # before and after a text


def spell(word: str) -> list[int]:
    """The 50 numbers of a word."""
    inside = [_MARKED[word]] if word in _MARKED else list(word.encode(errors="ignore")[: LONGEST - 2])
    whole = [_BEGINS, *inside, _ENDS]
    return [1 + number for number in (*whole, *[_EMPTY] * (LONGEST - len(whole)))]


def _token(word: str) -> int:
    """A number from 1 to 2⁵⁶."""
    return 1 + int.from_bytes(hashlib.blake2b(word.encode(errors="replace"), digest_size=7).digest())


@dataclass(frozen=True)
class Words:
    """Cuts text into words and remembers how each is spelled, by its token."""

    spelled: dict[int, list[int]] = field(default_factory=dict)
    pad_token_id: int = 0

    @property
    def all_special_ids(self) -> list[int]:
        """The tokens of the marks around a text."""
        return [_token(mark) for mark in _MARKED]

    def __call__(
        self, text: str, *, add_special_tokens: bool = False, verbose: bool = False
    ) -> dict[str, list[int]]:
        """Encode one text."""
        normalise, cut = self._bert
        found = [word for word, _ in cut.pre_tokenize_str(normalise.normalize_str(text))]
        if add_special_tokens:
            found = ["[CLS]", *found, "[SEP]"]
        tokens = [_token(word) for word in found]
        self.spelled.update({token: spell(word) for token, word in zip(tokens, found, strict=True)})
        return {"input_ids": tokens}

    @cached_property
    def _bert(self) -> tuple[Any, Any]:
        from tokenizers import normalizers, pre_tokenizers

        return normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()

    def characters(self, tokens: Tensor) -> Tensor:
        """The characters [b, t, 50] of the words [b, t]; all 0 where there is none."""
        nothing = [0] * LONGEST
        return torch.tensor([[self.spelled.get(token, nothing) for token in row] for row in tokens.tolist()])


def spelled(text: Text, words: Words) -> Text:
    """A text of these words' tokens, with the characters of each in its place."""

    def change(batch: Batch) -> Batch:
        assert isinstance(batch.inputs, dict)
        characters = words.characters(batch.inputs["input_ids"])
        return replace(batch, inputs={**batch.inputs, "input_ids": characters})

    return replace(text, change=change, alphabet="words, each of its characters")
