"""From text to batches: packing, framing, limits, policies, and keys that know only content."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
import torch

import isoscope
from isoscope.data.documents import documents
from isoscope.data.text import Text
from isoscope.errors import IsoscopeError
from tests.models import tiny
from tests.models.tiny import CLS, PAD, SEP

FRAMES = {"both": ([CLS], [SEP]), "bos": ([CLS], []), "none": ([], [])}
LINES = "\n".join("abcdefghij"[: 1 + i % 10] + str(i) for i in range(40)) + "\n"


@pytest.fixture
def lines(tmp_path: Path) -> str:
    (tmp_path / "lines.txt").write_text(LINES)
    return str(tmp_path / "lines.txt")


def bare(data: Text, frame: str) -> list[list[int]]:
    """The sequences without their special tokens, which must be where the frame says."""
    before, after = FRAMES[frame]
    found = []
    for row in data.sequences:
        ids = row.tolist()
        end = len(ids) - len(after)
        assert ids[: len(before)] == before
        assert ids[end:] == after
        found.append(ids[len(before) : end])
    return found


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("length", [7, 64])
def test_packed_sequences_reassemble_to_the_stream(lines: str, frame: str, length: int) -> None:
    tokenizer = tiny.tokenizer(frame)
    data = isoscope.text(lines, tokenizer, max_length=length, limit=None)
    stream = tokenizer(LINES, add_special_tokens=False)["input_ids"]
    chunks = bare(data, frame)
    assert list(chain(*chunks)) == stream
    assert {len(row) for row in data.sequences[:-1]} == {length}
    assert 0 < len(data.sequences[-1]) <= length
    assert data.facts()["packed"] is True


def test_packing_joins_documents_and_blocks(tmp_path: Path) -> None:
    """More than one block of a text file: the seams leave no trace."""
    content = "".join(f"line {number}\n" for number in range(12_000))
    (tmp_path / "long.txt").write_text(content)
    tokenizer = tiny.tokenizer()
    assert len(list(documents(str(tmp_path / "long.txt")))) > 1
    data = isoscope.text(str(tmp_path / "long.txt"), tokenizer, limit=None)
    assert list(chain(*bare(data, "both"))) == tokenizer(content, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("frame", FRAMES)
def test_unpacked_each_line_is_a_sequence(lines: str, frame: str) -> None:
    tokenizer = tiny.tokenizer(frame)
    data = isoscope.text(lines, tokenizer, pack=False, limit=None)
    assert bare(data, frame) == [
        tokenizer(line, add_special_tokens=False)["input_ids"] for line in LINES.splitlines()
    ]
    cut = isoscope.text(lines, tokenizer, pack=False, max_length=6, limit=None)
    assert max(map(len, cut.sequences)) == 6
    assert [len(row) for row in cut.sequences] == [min(6, len(row)) for row in data.sequences]


def test_a_text_shorter_than_one_chunk(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("hi")
    data = isoscope.text(str(tmp_path / "short.txt"), tiny.tokenizer())
    assert [len(row) for row in data.sequences] == [4]
    (batch,) = data
    assert batch.counts is not None
    assert batch.counts.tolist() == [[False, True, True, False]]


@pytest.mark.parametrize("content", ["", "\n\n  \n"])
@pytest.mark.parametrize("pack", [True, False])
def test_nothing_to_read(tmp_path: Path, content: str, pack: bool) -> None:
    (tmp_path / "empty.txt").write_text(content)
    with pytest.raises(IsoscopeError, match="holds no text; there is nothing to measure"):
        isoscope.text(str(tmp_path / "empty.txt"), tiny.tokenizer(), pack=pack)


def test_limit_takes_the_first(lines: str) -> None:
    few = isoscope.text(lines, tiny.tokenizer(), pack=False, limit=3)
    everything = isoscope.text(lines, tiny.tokenizer(), pack=False, limit=None)
    assert len(few.sequences) == few.facts()["sequences"] == 3
    assert len(everything.sequences) == 40
    assert all(torch.equal(a, b) for a, b in zip(few.sequences, everything.sequences, strict=False))
    assert few.facts()["data_hash"] != everything.facts()["data_hash"]


@pytest.mark.parametrize("option", ["limit", "max_length", "batch_size"])
def test_numbers_below_one(lines: str, option: str) -> None:
    with pytest.raises(IsoscopeError, match=f"{option} is 0; it must be at least 1"):
        isoscope.text(lines, tiny.tokenizer(), **{option: 0})  # type: ignore[arg-type]


def test_no_room_beside_the_frame(lines: str) -> None:
    with pytest.raises(IsoscopeError, match="max_length 2 has no room for text beside the special tokens"):
        isoscope.text(lines, tiny.tokenizer(), max_length=2)
    assert isoscope.text(lines, tiny.tokenizer("none"), max_length=2, limit=2).sequences[0].shape == (2,)


@pytest.mark.parametrize(
    ("special", "first", "expected"),
    [
        (False, False, [0, 1, 1, 1, 0, 0]),
        (True, False, [0, 1, 1, 1, 1, 0]),
        (False, True, [0, 1, 1, 1, 0, 0]),  # the first position is the special token
        (True, True, [1, 1, 1, 1, 1, 0]),
    ],
)
def test_policies_count_and_are_recorded(
    tmp_path: Path, special: bool, first: bool, expected: list[int]
) -> None:
    (tmp_path / "two.txt").write_text("abc\nwxyz\n")
    data = isoscope.text(
        str(tmp_path / "two.txt"), tiny.tokenizer(), pack=False, special=special, first=first
    )
    (batch,) = data
    assert batch.counts is not None
    assert batch.counts[1].int().tolist() == expected
    words = {True: "counted", False: "left out"}
    assert data.facts()["counting"] == {
        "padding": "left out",
        "special tokens": words[special],
        "position 0": words[first],
    }


def test_without_special_tokens_the_first_position_is_text(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("abc")
    for first in (False, True):
        data = isoscope.text(str(tmp_path / "one.txt"), tiny.tokenizer("none"), first=first)
        (batch,) = data
        assert batch.counts is not None
        assert batch.counts.tolist() == [[first, True, True]]


def test_batches_mask_the_padding_and_hold_every_sequence_once(lines: str) -> None:
    data = isoscope.text(lines, tiny.tokenizer(), pack=False, batch_size=7, limit=None)
    batches = list(data)
    assert len(batches) == len(data) == 6
    found = []
    for batch in batches:
        ids, mask = batch.inputs["input_ids"], batch.inputs["attention_mask"].bool()
        assert bool((ids[~mask] == PAD).all())
        assert not bool((ids[mask] == PAD).any())
        assert batch.counts is not None
        assert not bool((batch.counts & ~mask).any())
        found += [row[mine].tolist() for row, mine in zip(ids, mask, strict=True)]
    assert sorted(found) == sorted(row.tolist() for row in data.sequences)


@pytest.mark.parametrize("size", [1, 7, 32])
def test_keys_are_of_content_alone(lines: str, size: int) -> None:
    """A sequence keeps its key whatever it is padded to, whoever its neighbours are."""

    def keys(batch_size: int, seed: int = 0) -> dict[tuple[int, ...], int]:
        data = isoscope.text(
            lines, tiny.tokenizer(), pack=False, batch_size=batch_size, limit=None, seed=seed
        )
        return {
            tuple(row[mask.bool()].tolist()): int(key)
            for batch in data
            for row, mask, key in zip(*batch.inputs.values(), batch.keys, strict=True)
        }

    assert keys(size) == keys(16)
    assert len(set(keys(size).values())) == 40
    assert not set(keys(size).values()) & set(keys(size, seed=1).values())
