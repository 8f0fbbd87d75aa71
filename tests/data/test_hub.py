"""Columns of datasets as data: what is read is what was written, and little is read."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from pyarrow import parquet

import isoscope
from isoscope.data.audio import sounds
from isoscope.data.documents import documents
from isoscope.data.hub import Column, column_at
from isoscope.data.image import images
from isoscope.errors import IsoscopeError
from tests.data.test_images import process
from tests.data.test_sounds import extract, tone
from tests.data.written import (
    RANDOM,
    WAYS,
    Write,
    as_lines,
    as_parquet,
    as_saved,
    datasets,
    picture,
    png,
    table,
    wav,
)
from tests.models import tiny
from tests.tiers import nightly

WORDS = ["alpha beta", "ünïcödé 北京", "  ", None, "", "last\nlines"]
KEPT = ["alpha beta", "ünïcödé 北京", "last\nlines"]


@pytest.mark.parametrize("write", WAYS)
def test_texts_come_back_as_they_were_written(tmp_path: Path, write: Write) -> None:
    folder = write(table(text=WORDS, body=[f"b{i}" for i in range(6)], number=list(range(6))), tmp_path / "d")
    assert list(documents(f"{folder}:test:text")) == KEPT
    assert list(documents(f"{folder}:test:body", whole=False)) == [f"b{i}" for i in range(6)]


def test_a_folder_of_plain_text_has_its_lines(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("one\n\ntwo\n")
    assert list(documents(f"{tmp_path}:train:text")) == ["one", "two"]


@pytest.mark.parametrize("write", [as_parquet, as_lines])
def test_a_dataset_is_measured_as_the_same_text_in_a_file(tmp_path: Path, write: Write) -> None:
    lines = ["".join(chr(97 + i) for i in RANDOM.integers(0, 26, 1 + n)) + "\n" for n in range(70)]
    (tmp_path / "lines.txt").write_text("".join(lines))
    folder = write(table(text=lines), tmp_path / "d")
    one, other = (
        isoscope.text(address, tiny.tokenizer(), limit=None, max_length=23)
        for address in (str(tmp_path / "lines.txt"), f"{folder}:train:text")
    )
    units = {"unit": "document: row of a dataset", "number": other.facts()["units"]["number"]}
    assert one.facts() | {"data": f"{folder}:train:text", "units": units} == other.facts()
    assert len(other.facts()["data_hash"]) == 16


@pytest.mark.parametrize("write", [as_parquet, as_saved])
def test_pictures(tmp_path: Path, write: Write) -> None:
    drawn = [picture() for _ in range(3)]
    rows = [{"bytes": png(of), "path": f"{number}.png"} for number, of in enumerate(drawn)]
    rows[1:1] = [None, {"bytes": b"no picture", "path": None}]
    data = images(f"{write(table(image=rows), tmp_path / 'd')}:train:image", process)
    assert [of.tobytes() for of in data.pictures] == [of.tobytes() for of in drawn]
    assert data.notes == ("pictures that cannot be read are left out: 1, first row 3",)
    assert data.facts()["data_hash"] == images(data.address, process, batch_size=1).facts()["data_hash"]


@pytest.mark.parametrize("with_soundfile", [True, False])
@pytest.mark.parametrize("write", [as_parquet, *nightly(as_saved)])
def test_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write, with_soundfile: bool
) -> None:
    if not with_soundfile:
        monkeypatch.setitem(sys.modules, "soundfile", None)
    played = [tone(0.1, 16_000, hertz) for hertz in (300, 400, 500)]
    rows = [{"bytes": wav(clip), "path": f"in/{number}.wav"} for number, clip in enumerate(played)]
    rows.append({"bytes": wav(np.zeros(1600)), "path": "in/silent.wav"})
    data = sounds(f"{write(table(audio=rows), tmp_path / 'd')}:test:audio", extract)
    np.testing.assert_allclose(np.stack(data.clips), np.stack(played), atol=1e-4)
    assert data.notes == ("recordings of silence are left out: 1, first silent.wav",)
    assert data.facts()["seconds"] == 0.3


def test_rows_that_only_name_their_files(tmp_path: Path) -> None:
    """A folder of files as the library reads one; and a name that leads elsewhere is not followed."""
    (tmp_path / "heard").mkdir()
    (tmp_path / "heard" / "a.wav").write_bytes(wav(tone(0.1, 16_000)))
    assert sounds(f"{tmp_path / 'heard'}:train:audio", extract).size == 1
    real = tmp_path / "real.png"
    picture().save(real)
    rows = [
        {"bytes": None, "path": path} for path in (f"file://{real}", str(tmp_path / "lost.png"), str(real))
    ]
    made = table(image=rows)  # to_parquet and save_to_disk would put the files in
    (tmp_path / "d").mkdir()
    parquet.write_table(
        made.data.table.replace_schema_metadata(made.features.arrow_schema.metadata),
        tmp_path / "d" / "train.parquet",
    )
    data = images(f"{tmp_path / 'd'}:train:image", process)
    assert data.size == 1
    assert data.notes == ("pictures that cannot be read are left out: 2, first real.png",)


def test_configurations(tmp_path: Path) -> None:
    for name in ("small", "large"):
        (tmp_path / name).mkdir()
        table(text=[name]).to_parquet(tmp_path / name / "train.parquet")
    said = "".join(f"- config_name: {n}\n  data_files: {n}/*.parquet\n" for n in ("small", "large"))
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n{said}---\n")
    assert list(documents(f"{tmp_path}@small:train:text")) == ["small"]
    assert list(documents(f"{tmp_path}@large:train:text")) == ["large"]
    with pytest.raises(
        IsoscopeError, match=r"several configurations; name one as .*@CONFIG:train:text: large, "
    ):
        documents(f"{tmp_path}:train:text")
    with pytest.raises(
        IsoscopeError, match=r"no configuration of .* is called 'smal'; did you mean 'small'\?"
    ):
        documents(f"{tmp_path}@smal:train:text")


def test_a_small_limit_reads_little_and_a_broken_stream_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []
    read: list[int] = []

    def rows() -> Iterator[dict[str, str]]:
        for number in range(10_000):
            read.append(number)
            yield {"text": f"words of row {number}"}
        raise OSError("the line went dead")

    def load(*words: object, **options: object) -> dict[str, datasets.IterableDataset]:
        asked.extend((*words, options))
        return {"test": datasets.IterableDataset.from_generator(rows)}

    monkeypatch.setattr("datasets.load_dataset", load)
    data = isoscope.text("owner/name@small:test:text", tiny.tokenizer(), limit=3, max_length=20)
    assert asked == ["owner/name", "small", {"streaming": True}]
    assert data.size == 3
    assert len(set(read)) < 200
    with pytest.raises(IsoscopeError, match="cannot read the dataset 'owner/name': the line went dead"):
        isoscope.text("owner/name@small:test:text", tiny.tokenizer(), limit=None)


def test_an_earlier_download_is_enough_without_a_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", cache)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(IsoscopeError, match=r"no dataset 'owner/words': .* the hub cannot be reached"):
        documents("owner/words:test:text")
    datasets.load_dataset(str(as_parquet(table(text=WORDS), tmp_path / "words")), cache_dir=str(cache))
    (kept,) = (place.parent for place in cache.rglob("dataset_info.json"))
    shutil.move(kept, cache / "owner___words" / "default" / "0.0.0" / kept.name)
    assert list(documents("owner/words:test:text")) == KEPT


@pytest.mark.parametrize(
    ("address", "column"),
    [
        ("imdb:train:text", Column("imdb", None, "train", "text")),
        ("o/n@c-1.0:test:a b", Column("o/n", "c-1.0", "test", "a b")),
        ("o/n@:test:text", Column("o/n@", None, "test", "text")),
        ("a:b:c:d", Column("a:b", None, "c", "d")),
        ("embedded", None),
        ("file.jsonl:text", None),
        ("o/n::text", None),
        ("o/n:test:", None),
        ("x" * 5000 + ":a:b", Column("x" * 5000, None, "a", "b")),
    ],
    ids=range(9),
)
def test_addresses(address: str, column: Column | None) -> None:
    assert column_at(address) == column


def test_what_is_there_comes_before_what_it_may_mean(tmp_path: Path) -> None:
    (tmp_path / "a:b:c").write_text("words\n")
    assert list(documents(str(tmp_path / "a:b:c"))) == ["words\n"]
    (tmp_path / "a:b.jsonl").write_text('{"body": "more"}\n')
    assert list(documents(f"{tmp_path / 'a:b.jsonl'}:body")) == ["more"]
    folder = as_parquet(table(text=["at"]), tmp_path / "d@home")
    assert list(documents(f"{folder}:train:text")) == ["at"]


def test_a_scan_left_half_way_does_not_abort_the_interpreter(tmp_path: Path) -> None:
    """Arrow's threads must be gone when Python ends; without care they are not, most of the time."""
    made = table(text=[f"word {number} " * 40 for number in range(50_000)])
    parquet.write_table(made.data.table, tmp_path / "train.parquet", row_group_size=500)
    code = f"import isoscope\nfor _ in range(3): isoscope.text('{tmp_path}:train:text', 'bytes', limit=4)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (told.returncode, told.stderr) == (0, "")


def test_measured_through_a_model(tmp_path: Path) -> None:
    folder = as_parquet(table(text=["some words of text"] * 9), tmp_path / "d")
    text = isoscope.text(f"{folder}:test:text", "bytes", max_length=16)
    seen = isoscope.observe(tiny.nano(), [b.inputs["input_ids"] for b in text], measures=["mean_norm"])
    assert torch.isfinite(torch.tensor(seen.frame()["value"].to_numpy())).all()
