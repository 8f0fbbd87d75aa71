"""What sequences were cut from: documents of text, speakers of recordings, blocks of one long text."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import wavfile

import isoscope
from isoscope.data.audio import recordings
from isoscope.data.batch import as_batch
from isoscope.data.documents import documents, pieces
from isoscope.data.keys import GROUPS, dealt_units, unit_keys
from isoscope.data.text import Text
from isoscope.errors import IsoscopeError
from isoscope.stats import places
from tests.models import tiny

LETTERS = list("abcdefghijklmnopqrstuvwxyz")


def written(path: Path, content: str) -> str:
    path.write_text(content)
    return str(path)


def prose(seed: int, words: int) -> str:
    return " ".join(
        "".join(np.random.default_rng((seed, word)).choice(LETTERS, size=4)) for word in range(words)
    )


def read(address: str, **options: object) -> Text:
    return isoscope.text(address, tiny.tokenizer(), max_length=12, **options)


def units_of(data: Text) -> list[int]:
    """The unit of every sequence, in the order of the sequences."""
    found = {}
    for batch in data:
        for ids, mask, unit in zip(
            batch.inputs["input_ids"], batch.inputs["attention_mask"], batch.units, strict=True
        ):
            found[tuple(ids[mask.bool()].tolist())] = int(unit)
    return [found[tuple(row.tolist())] for row in data.sequences]


@pytest.fixture
def records(tmp_path: Path) -> str:
    lines = [json.dumps({"text": prose(number, size)}) for number, size in enumerate((70, 3, 40, 8, 25))]
    return written(tmp_path / "records.jsonl", "\n".join(lines))


def test_a_chunk_belongs_to_the_document_it_begins_in(records: str) -> None:
    data = read(records)
    found = units_of(data)
    whole = [tiny.tokenizer()(text, add_special_tokens=False)["input_ids"] for text in documents(records)]
    begins = np.cumsum([0, *map(len, whole)])
    first = [int(np.searchsorted(begins, 10 * chunk, side="right")) - 1 for chunk in range(len(found))]
    often = Counter(first)
    for one in range(len(found)):
        for other in range(one):
            assert (found[one] == found[other]) == (first[one] == first[other])
    keys = [int(as_batch(row[None], seed=0).keys) for row in data.sequences]
    for unit, key, document in zip(found, keys, first, strict=True):
        assert (unit == key) == (often[document] == 1), "a chunk alone in its document stands for itself"
    assert data.facts()["units"] == {"unit": "document: record of a JSONL file", "number": len(often)}
    assert data.notes == ()


def test_the_limit_and_the_batch_do_not_change_a_unit(records: str) -> None:
    assert units_of(read(records, batch_size=1)) == units_of(read(records, batch_size=16))
    some, every = (units_of(read(records, limit=limit)) for limit in (50, None))
    assert [unit // GROUPS for unit in some[:-1]] == [unit // GROUPS for unit in every[:49]], (
        "but for the group"
    )
    assert units_of(read(records, seed=1)) != units_of(read(records))


def test_documents_are_dealt_out_evenly() -> None:
    """As many groups as documents up to 32, the largest alone, whatever the order."""
    assert GROUPS == places.GROUPS
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(40), [100, *random.integers(2, 9, size=39)])
    keys = torch.from_numpy(random.integers(2**60, size=len(labels)))
    found = unit_keys(labels, keys, dealt_units(labels))
    assert len(found.unique()) == 40 and len((found % GROUPS).unique()) == GROUPS
    size = torch.bincount(found % GROUPS, minlength=GROUPS)
    assert size.max() == 100 and size.sort().values[-2] <= 2 * size.min() + 8
    order = random.permutation(len(labels))
    again = unit_keys(labels[order], keys[order], dealt_units(labels[order]))
    assert torch.equal(again, found[order])
    few = unit_keys(labels[labels < 20], keys[labels < 20], dealt_units(labels[labels < 20]))
    assert len((few % GROUPS).unique()) == 20
    half = (found // GROUPS) % 2
    assert 0 < half.sum() < len(half)


def test_unpacked_sequences_are_units(records: str) -> None:
    data = read(records, pack=False)
    assert all(batch.units is None for batch in data)
    assert data.facts()["units"] == {"unit": "record of a JSONL file", "number": 5}


@pytest.mark.parametrize(
    ("content", "number"),
    [
        (" \n = One = \n \n first \n = = Part = = \n more \n = Two = \n second \n", 2),
        ("= One =\nfirst\n= Two =\nsecond\n= Three =\nthird\n", 3),
        ("first\n\nstill the first\n\n\n\nand still\n = One = \nnot headed from the top\n", 1),
        ("one book\n\f\nanother\n\f\na third\n\f\n", 3),
        ("a page\fand a page\nof one book\n", 1),
    ],
    ids=["articles", "bare articles", "paragraphs", "books", "form feed in a line"],
)
def test_documents_of_a_text_file(tmp_path: Path, content: str, number: int) -> None:
    file = written(tmp_path / "a.txt", content)
    _, found = pieces(file)
    named = list(found)
    assert len({each for each, _ in named}) == number
    assert [each for each, _ in named] == sorted(each for each, _ in named)
    assert "".join(text for _, text in named).strip() == content.strip()


@pytest.mark.parametrize("chunks", [1, 2, 5, 30, 100])
def test_one_long_text_is_cut_into_blocks(tmp_path: Path, chunks: int) -> None:
    data = read(written(tmp_path / "novel.txt", prose(0, 2 * chunks)), limit=None)
    size = len(data.sequences)
    block = max(1, round(size ** (1 / 3)))
    found = units_of(data)
    labels = [number // block for number in range(size)]
    for one in range(size):
        for other in range(one):
            assert (found[one] == found[other]) == (labels[one] == labels[other])
    blocks = -(-size // block)
    assert data.facts()["units"] == {"unit": f"{block} neighbouring chunks of one text", "number": blocks}
    said = f"what intervals take for independent is {block} neighbouring chunks of one text ({blocks})"
    assert list(data.notes) == ([] if size == 1 else [f"all text is from one document: {said}"])


def test_speakers_are_units_where_folders_name_them(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for name in (
        "01/0_01_0",
        "01/1_01_0",
        "p225/p225_002",
        "dog/dog_7",
        "84/9/84-9-0001",
        "84/10/84-10-0002",
    ):
        file = tmp_path / f"{name}.wav"
        file.parent.mkdir(parents=True, exist_ok=True)
        wavfile.write(file, 16_000, (1000 * random.normal(size=1600)).astype(np.int16))
    _, _, speakers = recordings(str(tmp_path))
    assert sorted(speakers) == ["", "01", "01", "84", "84", "p225"]
    _, _, inside = recordings(str(tmp_path / "01"))
    assert set(inside) == {""}, "what lies above the folder that is read says nothing"


def test_a_mapping_may_name_its_groups() -> None:
    ids = torch.arange(12).reshape(4, 3)
    one = as_batch({"input_ids": ids, "groups": ["a", "b", "a", "c"]}, seed=0)
    other = as_batch({"input_ids": ids.flip(0), "groups": torch.tensor([3, 1, 2, 1])}, seed=0)
    assert one.units is not None and other.units is not None
    assert one.units[0] == one.units[2] and len(one.units.unique()) == 3
    assert other.units[1] == other.units[3] and len(other.units.unique()) == 3
    assert set(one.inputs) == {"input_ids"}, "the model is not given them"
    assert one.take(torch.tensor([2, 0])).units.tolist() == [one.units[2], one.units[0]]
    with pytest.raises(IsoscopeError, match="groups holds 3 labels for 4 sequences; give one per sequence"):
        as_batch({"input_ids": ids, "groups": [1, 2, 3]}, seed=0)


def test_groups_of_an_observation() -> None:
    model = tiny.nano()
    ids = torch.randint(5, 40, (20, 9), generator=torch.Generator().manual_seed(0))
    labels = [number // 2 for number in range(20)]
    asked = {"measures": ["mean_cosine_between", "drift", "entropy"], "skip_special": False}
    listed = isoscope.observe(model, list(ids.split(6)), groups=labels, **asked)
    batches = [{"idx": x, "groups": some} for x, some in zip(ids.split(6), cut(labels, 6), strict=True)]
    named = isoscope.observe(Named(model), batches, **asked)
    alone = isoscope.observe(model, [ids], groups=list(range(20)), **asked).frame()
    plain = isoscope.observe(model, [ids], **asked).frame()
    assert alone.drop(columns="run").equals(plain.drop(columns="run"))
    np.testing.assert_allclose(listed.frame().value, named.frame().value, rtol=1e-9)
    np.testing.assert_allclose(listed.frame().low, named.frame().low, rtol=1e-9)
    drift = listed.frame().measure == "drift"
    assert (listed.frame().low[drift] != plain.low[drift]).all()
    for wrong in (labels[:-1], [*labels, 9]):
        with pytest.raises(IsoscopeError, match=f"groups holds {len(wrong)} labels for 20 sequences"):
            isoscope.observe(model, list(ids.split(6)), groups=wrong, **asked)


class Named(torch.nn.Module):
    """A model that is called by keyword, so that its batches are mappings."""

    def __init__(self, inside: torch.nn.Module) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, idx: torch.Tensor) -> torch.Tensor:
        return self.inside(idx)


def cut(labels: list[int], size: int) -> list[list[int]]:
    return [labels[start : start + size] for start in range(0, len(labels), size)]
