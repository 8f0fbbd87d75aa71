"""Bytes and characters as tokens, for a model that has no tokenizer or is to be fed without one.

An id is the value of the byte or the code point of the character, so it depends on nothing but the text.
There are no special tokens; 0 pads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from isoscope.errors import IsoscopeError, unknown_name

ALPHABETS = {"bytes": 256, "characters": 0x110000}  # how many ids each has


@dataclass(frozen=True)
class Alphabet:
    """The bytes of a text in UTF-8, or its code points, each below `vocabulary`."""

    name: str
    vocabulary: int
    all_special_ids: list[int] = field(default_factory=list)
    pad_token_id: int = 0

    def __call__(
        self, text: str, *, add_special_tokens: bool = False, verbose: bool = False
    ) -> dict[str, list[int]]:
        """Encode one text; as bytes, half of a surrogate pair, which UTF-8 has none for, becomes "?"."""
        if self.name == "bytes":
            return {"input_ids": list(text.encode(errors="replace"))}
        ids = [ord(character) for character in text]
        if (beyond := next((number for number in ids if number >= self.vocabulary), None)) is not None:
            raise IsoscopeError(
                f"the character {chr(beyond)!r} (U+{beyond:04X}, {beyond}) is beyond the {self.vocabulary} "
                "tokens this model knows; give text without it, or feed bytes."
            )
        return {"input_ids": ids}


def alphabet(name: str, vocabulary: int | None = None) -> Alphabet:
    """The tokens ``bytes`` or ``characters``, for a model that knows `vocabulary` ids (None: any)."""
    if name not in ALPHABETS:
        raise unknown_name("alphabet", name, ALPHABETS)
    known = ALPHABETS[name] if vocabulary is None else vocabulary
    if name == "bytes" and known < ALPHABETS[name]:
        raise IsoscopeError(
            f"bytes need a vocabulary of {ALPHABETS[name]}, and this model knows {known} tokens; "
            "give plain text with --tokens characters, or batches of tensors."
        )
    return Alphabet(name, ALPHABETS[name] if name == "bytes" else known)
