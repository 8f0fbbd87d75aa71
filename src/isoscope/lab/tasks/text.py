"""Lessons from text: the next character, word or sub-word, or those that are masked."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isoscope.data.documents import documents
from isoscope.errors import IsoscopeError
from isoscope.lab.tasks.base import NOTHING, Examples, Lesson, data_hash, set_apart, token_loss, windows

SUBWORDS = 2048  # the size of a vocabulary that is learnt
MASKED = 0.15  # of the positions


def characters(data: str, length: int) -> Lesson:
    """The next character."""
    text = _text(data)
    alphabet = {letter: number for number, letter in enumerate(sorted(set(text)))}
    ids = torch.tensor([alphabet[letter] for letter in text])
    return _next(ids, len(alphabet), length, data, "character")


def words(data: str, length: int) -> Lesson:
    """The next word, as blanks set them apart; a line's end is one. Its vocabulary is all of them."""
    each = [word for line in _text(data).splitlines() for word in (*line.split(), "\n")]
    known = {word: number for number, word in enumerate(sorted(set(each)))}
    return _next(torch.tensor([known[word] for word in each]), len(known), length, data, "word")


def subwords(data: str, length: int) -> Lesson:
    """The next sub-word of a byte-pair encoding that is learnt from the same text."""
    ids, size = _encoded(data)
    return _next(ids, size, length, data, "token")


def masked(data: str, length: int) -> Lesson:
    """The sub-words behind masks: 15 % of the positions, each replaced by one token that is no other."""
    ids, mask = _encoded(data)  # one number more than there are tokens
    held, rest = set_apart(ids, length, data)
    inputs = held[:-1].view(-1, length)

    def hidden(inputs: Tensor, random: torch.Generator) -> Examples:
        gone = torch.rand(inputs.shape, generator=random) < MASKED
        gone[:, 0] |= ~gone.any(1)  # none without a question
        return Examples(inputs.masked_fill(gone, mask), inputs.masked_fill(~gone, NOTHING))

    def draw(random: torch.Generator, size: int) -> Examples:
        starts = torch.randint(len(rest) - length + 1, (size,), generator=random)
        return hidden(windows(rest, starts, length), random)

    judged, facts = hidden(inputs, torch.Generator().manual_seed(0)), _facts(data, ids, mask)
    told = (token_loss, math.log(mask), "nats a token", mask + 1, length)
    return Lesson(draw, judged, *told, causal=False, facts=facts)


def _next(ids: Tensor, size: int, length: int, data: str, item: str) -> Lesson:
    """What comes next in a line of ids."""
    held, rest = set_apart(ids, length, data)

    def draw(random: torch.Generator, count: int) -> Examples:
        found = windows(rest, torch.randint(len(rest) - length, (count,), generator=random), length + 1)
        return Examples(found[:, :-1], found[:, 1:])

    judged = Examples(held[:-1].view(-1, length), held[1:].view(-1, length))
    told = (token_loss, math.log(size), f"nats a {item}", size, length)
    return Lesson(draw, judged, *told, facts=_facts(data, ids, size))


def _facts(data: str, ids: Tensor, size: int) -> dict[str, object]:
    return {"data": data, "data_hash": data_hash(ids), "items": len(ids), "vocabulary": size}


def _text(data: str) -> str:
    text = "".join(documents(data))
    if not text.strip():
        raise IsoscopeError(f"data '{data}' holds no text to learn from.")
    return text


def _encoded(data: str) -> tuple[Tensor, int]:
    """The text in sub-words, and how many of them there are."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    lines = _text(data).splitlines(keepends=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=SUBWORDS, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    ids = [number for line in lines for number in tokenizer.encode(line).ids]
    return torch.tensor(ids), tokenizer.get_vocab_size()
