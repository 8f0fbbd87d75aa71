"""Bytes and characters as tokens: ids that depend on the text alone, and what does not fit is named."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import isoscope
from isoscope.data.alphabet import alphabet
from isoscope.errors import IsoscopeError
from isoscope.models.inputs import known_tokens, open_data
from isoscope.models.source import Model
from tests.models import tiny


def random_text(seed: int, length: int = 333) -> str:
    """Characters of one to four bytes, surrogates left out."""
    points = np.random.default_rng(seed).choice([0x61, 0xE9, 0x4EAC, 0x1F600, 0x0A], size=length)
    return "".join(map(chr, points))


@pytest.mark.parametrize("seed", range(3))
def test_ids_give_the_text_back(tmp_path: Path, seed: int) -> None:
    content = random_text(seed)
    (tmp_path / "a.txt").write_text(content)

    def ids(tokens: str) -> list[int]:
        data = isoscope.text(str(tmp_path / "a.txt"), tokens, limit=None, max_length=17)
        return list(chain(*(row.tolist() for row in data.sequences)))

    assert bytes(ids("bytes")).decode() == content
    assert "".join(map(chr, ids("characters"))) == content


def test_no_special_tokens_and_nothing_left_out_but_the_first(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("abc\nde\n")
    data = isoscope.text(str(tmp_path / "a.txt"), "bytes", pack=False, first=True)
    (batch,) = data
    assert batch.inputs["input_ids"].tolist() == [[97, 98, 99], [100, 101, 0]]
    assert batch.counts.tolist() == [[True, True, True], [True, True, False]]
    assert data.facts()["alphabet"] == "bytes"
    assert "alphabet" not in isoscope.text(str(tmp_path / "a.txt"), tiny.tokenizer()).facts()


@pytest.mark.parametrize("vocabulary", [1, 98, 0xE9, 0xEA, 0x4EAC, 0x4EAD])
def test_the_first_character_beyond_the_vocabulary_is_named(vocabulary: int) -> None:
    content = "abé京"
    beyond = [character for character in content if ord(character) >= vocabulary]
    if not beyond:
        assert alphabet("characters", vocabulary)(content)["input_ids"] == list(map(ord, content))
        return
    with pytest.raises(IsoscopeError, match=rf"the character '{beyond[0]}' \(U\+{ord(beyond[0]):04X}, "):
        alphabet("characters", vocabulary)(content)


def test_what_is_no_alphabet_and_what_does_not_fit() -> None:
    with pytest.raises(IsoscopeError, match="no alphabet is called 'byte'; did you mean 'bytes'"):
        alphabet("byte")
    with pytest.raises(
        IsoscopeError, match="bytes need a vocabulary of 256, and this model knows 255 tokens"
    ):
        alphabet("bytes", 255)
    assert alphabet("bytes", 256) == alphabet("bytes")
    assert alphabet("bytes")("\ud800a")["input_ids"] == [ord("?"), ord("a")]
    assert alphabet("characters")("")["input_ids"] == []


@pytest.mark.parametrize(
    ("family", "known"), [("bert", 261), ("gpt2", 261), ("llama", 261), ("canine", None)]
)
def test_how_many_tokens_a_model_knows(family: str, known: int | None) -> None:
    model = tiny.model(family)
    if family == "canine":  # its own config has no such thing: it hashes code points
        del model.config.vocab_size
    assert known_tokens(model) == known
    data = open_data("embedded", Model(model, family), limit=2, max_length=20, tokens="bytes")
    assert [len(row) for row in data.sequences] == [20, 20]


def test_a_module_that_does_not_say() -> None:
    assert known_tokens(tiny.nano()) is None
