"""Text as data: `embedded`, a text file, a JSONL file or a dataset becomes batches of token ids.

Text is packed: documents are joined and cut into chunks of full length, so that every vector has about as
much context as the next and no padding is needed. Batches hold sequences of like length. Chunks of one
document are not independent, so the document is their unit; a chunk that spans two belongs to the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, islice
from typing import Protocol

import torch
from torch import Tensor

from isoscope.data.alphabet import Alphabet, alphabet
from isoscope.data.batch import Batch
from isoscope.data.counting import Policy, special_ids
from isoscope.data.documents import pieces
from isoscope.data.keys import content_hash, content_keys, dealt_units, unit_keys
from isoscope.errors import IsoscopeError, refuse_sizes

LIMIT, MAX_LENGTH, BATCH_SIZE = 256, 512, 16


class Tokenizer(Protocol):
    """What is asked of a tokenizer: to be called, and to say what is special and what pads."""

    @property
    def all_special_ids(self) -> list[int]:
        """The ids of special tokens."""
        ...

    @property
    def pad_token_id(self) -> int | None:
        """The id that pads, where there is one."""
        ...

    def __call__(self, text: str, *, add_special_tokens: bool, verbose: bool) -> dict[str, list[int]]:
        """Encode one text."""
        ...


@dataclass(frozen=True)
class Text:
    """Token sequences, ready to be batched; iterate over it for batches. Make one with `text`.

    `documents` are hashes of the document that each sequence begins in, and `document` says what that is;
    none where each sequence is a document. `even` batches hold sequences of one length only, for models that
    would see the padding. Every batch is passed through `change`, for models that take a text in another way;
    `said` is what a run records of that.
    """

    address: str
    sequences: tuple[Tensor, ...]
    special_ids: frozenset[int]
    pad_id: int
    policy: Policy
    batch_size: int
    seed: int
    packed: bool
    documents: tuple[int, ...] = ()
    document: str = ""
    start: int | None = None
    notes: tuple[str, ...] = ()
    even: bool = False
    alphabet: str = ""
    change: Callable[[Batch], Batch] | None = None
    said: Mapping[str, object] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many sequences."""
        return len(self.sequences)

    def __len__(self) -> int:
        return sum(-(-len(rows) // self.batch_size) for rows in self._alike())

    def __iter__(self) -> Iterator[Batch]:
        for rows in self._alike():
            for start in range(0, len(rows), self.batch_size):
                batch = self._batch(rows[start : start + self.batch_size])
                yield batch if self.change is None else self.change(batch)

    @cached_property
    def _keys(self) -> Tensor:
        return torch.cat([content_keys(row[None], self.seed) for row in self.sequences])

    @cached_property
    def _units(self) -> tuple[Tensor | None, str]:
        """The unit of each sequence, and what a unit is.

        Of one long text, blocks of n^⅓ of n neighbouring chunks: the length at which the variance of a mean
        is estimated best from blocks (Hall, Horowitz & Jing 1995).
        """
        if not self.packed:
            return None, self.document
        labels, size = self.documents, len(self.documents)
        if len(set(labels)) > 1:
            return unit_keys(labels, self._keys, dealt_units(labels)), f"document: {self.document}"
        block = max(1, round(size ** (1 / 3)))
        labels = tuple(number // block for number in range(size))
        whole = [self._keys[start : start + block] for start in range(0, size, block)]
        hashes = [int(content_keys(keys[None], self.seed)) for keys in whole]
        named = [hashes[label] for label in labels]
        units = unit_keys(named, self._keys, dealt_units(named))
        return units, f"{block} neighbouring chunks of one text"

    def _alike(self) -> list[list[int]]:
        """The sequences that may share a batch, longest first: all, or those of one length."""

        def length(number: int) -> int:
            return len(self.sequences[number])

        by_length = sorted(range(len(self.sequences)), key=length, reverse=True)
        return [list(rows) for _, rows in groupby(by_length, key=length)] if self.even else [by_length]

    def _batch(self, numbers: list[int]) -> Batch:
        rows = [self.sequences[number] for number in numbers]
        size, length = len(rows), max(map(len, rows))
        ids = torch.full((size, length), self.pad_id)
        mask = torch.zeros(size, length, dtype=torch.long)
        counts = torch.zeros(size, length, dtype=torch.bool)
        special = torch.tensor(sorted(self.special_ids), dtype=torch.long)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = row
            mask[i, : len(row)] = 1
            counts[i, : len(row)] = self.policy.counts(torch.isin(row, special))
        units, _ = self._units
        units = None if units is None else units[numbers]
        inputs = {"input_ids": ids, "attention_mask": mask}
        if self.start is not None:
            inputs["decoder_input_ids"] = torch.cat([torch.full((size, 1), self.start), ids[:, :-1]], dim=1)
            shifted = torch.cat([torch.zeros(size, 1, dtype=torch.bool), counts[:, :-1]], dim=1)
        spoken = None if self.start is None else shifted
        return Batch(inputs, counts, self._keys[numbers], decoder_counts=spoken, units=units)

    @property
    def _told_units(self) -> dict[str, object]:
        units, rule = self._units
        return {"unit": rule, "number": self.size if units is None else len(set(units.tolist()))}

    @property
    def unit_notes(self) -> tuple[str, ...]:
        """What a reader must know of the units: where all text is one document."""
        if not self.packed or len(set(self.documents)) > 1 or self.size == 1:
            return ()
        unit, number = self._told_units.values()
        return (f"all text is from one document: what intervals take for independent is {unit} ({number})",)

    def facts(self) -> dict[str, object]:
        """What a run records of its data."""
        digest = content_hash(row.numpy().tobytes() + b"|" for row in self.sequences)
        return {
            "data": self.address, "data_hash": digest, "sequences": len(self.sequences),
            "tokens": sum(map(len, self.sequences)), "longest": max(map(len, self.sequences)),
            "packed": self.packed, "units": self._told_units, "counting": self.policy.describe(),
            "seed": self.seed,
            **({"alphabet": self.alphabet} if self.alphabet else {}), **self.said
        }  # fmt: skip


def text(
    address: str, tokenizer: Tokenizer | str,
    *, limit: int | None = LIMIT, max_length: int = MAX_LENGTH, batch_size: int = BATCH_SIZE,
    pack: bool = True, special: bool = False, first: bool = False, start: int | None = None,
    even: bool = False, seed: int = 0
) -> Text:  # fmt: skip
    """Read the text at `address`: ``embedded``, a text file, ``file.jsonl:column`` or ``id:split:column``.

    `tokenizer` is one, or says ``bytes`` or ``characters``: then those are the tokens (see `alphabet`).
    At most `limit` sequences (None: all) of at most `max_length` tokens. `pack=False` makes each
    document (each line of a text file, each row of a dataset) one sequence. `special` and `first` count
    special tokens and position 0 as data. A decoder is fed the same tokens after its `start` token. `even`
    batches hold sequences of one length, for models that would see padding.
    """
    refuse_sizes(limit, max_length, batch_size)
    if isinstance(tokenizer, str):
        tokenizer = alphabet(tokenizer)
    before, after = _frame_of(tokenizer)
    room = max_length - len(before) - len(after)
    if room < 1:
        raise IsoscopeError(f"max_length {max_length} has no room for text beside the special tokens.")
    document, found = pieces(address, whole=pack)
    encoded = ((number, _encode(tokenizer, piece)) for number, piece in found)
    chunks = _packed(encoded, room, seed) if pack else ((0, ids[:room]) for _, ids in encoded if ids)
    kept = list(islice(chunks, limit))
    sequences = tuple(torch.tensor([*before, *ids, *after]) for _, ids in kept)
    if not sequences:
        raise IsoscopeError(f"data '{address}' holds no text; there is nothing to measure.")
    made = Text(
        address=address, sequences=sequences, special_ids=special_ids(tokenizer),
        pad_id=tokenizer.pad_token_id or 0, policy=Policy(special, first), batch_size=batch_size, seed=seed,
        packed=pack, documents=tuple(unit for unit, _ in kept) if pack else (), document=document,
        start=start, even=even,
        alphabet=tokenizer.name if isinstance(tokenizer, Alphabet) else ""
    )  # fmt: skip
    return replace(made, notes=made.unit_notes)


def in_blocks(text: Text) -> Text:
    """A text for a model that forms its own positions (MANTa): every one of its encoder counts."""
    counting = {**text.policy.describe(), "blocks": "counted"}
    return replace(text, change=lambda batch: replace(batch, counts=None), said={"counting": counting})


def _encode(tokenizer: Tokenizer, document: str) -> list[int]:
    return tokenizer(document, add_special_tokens=False, verbose=False)["input_ids"]


def _frame_of(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The special tokens that the tokenizer puts before and after a text."""
    bare = _encode(tokenizer, "a")
    full = tokenizer("a", add_special_tokens=True, verbose=False)["input_ids"]
    for start in range(len(full) - len(bare) + 1):
        if full[start : start + len(bare)] == bare:
            return full[:start], full[start + len(bare) :]
    return [], []


def _packed(
    encoded: Iterable[tuple[int, list[int]]], room: int, seed: int
) -> Iterator[tuple[int, list[int]]]:
    """Join the documents and cut them every `room` tokens; the last piece may be shorter.

    With each comes a hash of the document it begins in, which is that of the document's first piece.
    """
    waiting: list[int] = []
    whose: list[int] = []
    own = last = -1
    for number, ids in encoded:
        if not ids:
            continue
        if number != last:
            own, last = int(content_keys(torch.tensor([ids]), seed)), number
        waiting += ids
        whose += [own] * len(ids)
        start = 0
        while len(waiting) - start >= room:
            yield whose[start], waiting[start : start + room]
            start += room
        del waiting[:start], whose[:start]
    if waiting:
        yield whose[0], waiting
