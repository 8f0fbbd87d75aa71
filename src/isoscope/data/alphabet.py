"""Bytes and characters as tokens, for a model that has no tokenizer or is to be fed without one.

An id is the value of the byte or the code point of the character, so it depends on nothing but the text.
There are no special tokens; 0 pads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from isoscope.errors import IsoscopeError, unknown_name

ALPHABETS = ("bytes", "characters")
_BYTES, _CODE_POINTS = 256, 0x110000


@dataclass(frozen=True)
class Bytes:
    """The bytes of the text in UTF-8, 0 … 255."""

    name: str = "bytes"
    all_special_ids: list[int] = field(default_factory=list)
    pad_token_id: int = 0

    def __call__(
        self, text: str, *, add_special_tokens: bool = False, verbose: bool = False
    ) -> dict[str, list[int]]:
        """Encode one text; half of a surrogate pair, which UTF-8 has no bytes for, becomes "?".

        >>> Bytes()("aé")["input_ids"]
        [97, 195, 169]
        """
        return {"input_ids": list(text.encode(errors="replace"))}


@dataclass(frozen=True)
class CodePoints:
    """The code points of the text, each below `vocabulary`."""

    vocabulary: int = _CODE_POINTS
    name: str = "characters"
    all_special_ids: list[int] = field(default_factory=list)
    pad_token_id: int = 0

    def __call__(
        self, text: str, *, add_special_tokens: bool = False, verbose: bool = False
    ) -> dict[str, list[int]]:
        """Encode one text.

        >>> CodePoints()("aé")["input_ids"]
        [97, 233]
        """
        ids = [ord(character) for character in text]
        if ids and max(ids) >= self.vocabulary:
            beyond = next(number for number in ids if number >= self.vocabulary)
            raise IsoscopeError(
                f"the character {chr(beyond)!r} (U+{beyond:04X}, {beyond}) is beyond the {self.vocabulary} "
                "tokens this model knows; give text without it, or feed bytes."
            )
        return {"input_ids": ids}


def alphabet(name: str, vocabulary: int | None = None) -> Bytes | CodePoints:
    """The tokens of that name, ``bytes`` or ``characters``, for a model that knows `vocabulary` ids.

    None: any. Bytes need 256; that a character fits is seen when one comes that does not.

    >>> alphabet("characters", 128)("a")["input_ids"]
    [97]
    """
    if name == "characters":
        return CodePoints(_CODE_POINTS if vocabulary is None else vocabulary)
    if name != "bytes":
        raise unknown_name("alphabet", name, ALPHABETS)
    if vocabulary is not None and vocabulary < _BYTES:
        raise IsoscopeError(
            f"bytes need a vocabulary of {_BYTES}, and this model knows {vocabulary} tokens; "
            "give plain text with --tokens characters, or batches of tensors."
        )
    return Bytes()
