"""Small functions of data, each by an example."""

from __future__ import annotations

import torch

from isoscope.data.alphabet import alphabet
from isoscope.data.batch import as_batch
from isoscope.data.counting import Policy, tokens_before
from isoscope.data.keys import content_keys
from isoscope.data.words import Words, spell


def test_an_id_is_a_byte_or_a_code_point() -> None:
    assert alphabet("bytes")("aé")["input_ids"] == [97, 195, 169]
    assert alphabet("characters")("aé")["input_ids"] == [97, 233]


def test_a_mask_says_what_of_a_mapping_counts() -> None:
    ids, mask = torch.tensor([[5, 6], [7, 0]]), torch.tensor([[1, 1], [1, 0]])
    batch = as_batch({"input_ids": ids, "attention_mask": mask}, seed=0)
    assert batch.counts is not None
    assert batch.counts.tolist() == [[True, True], [True, False]]
    assert len(batch) == 2


def test_what_stands_before_patches_is_told_by_their_number() -> None:
    assert [tokens_before(197, 196), tokens_before(17, 256), tokens_before(64, 256)] == [1, 1, 0]


def test_the_first_position_does_not_count_by_default() -> None:
    assert Policy(special=True).counts(torch.tensor([True, False, True])).tolist() == [False, True, True]


def test_equal_rows_have_equal_keys() -> None:
    keys = content_keys(torch.tensor([[1, 2], [2, 1], [1, 2]]), seed=0)
    assert keys[0] == keys[2] != keys[1]


def test_a_word_is_spelt_between_marks() -> None:
    assert spell("hé")[:6] == [259, 105, 196, 170, 260, 261]
    assert spell("[CLS]")[:4] == [259, 257, 260, 261]


def test_words_are_cut_as_bert_cuts_them() -> None:
    words = Words()
    spelt = [words.spelled[token] for token in words("Ça va!")["input_ids"]]
    assert [bytes(n - 1 for n in word if n < 257) for word in spelt] == [b"ca", b"va", b"!"]
