"""A dataset that cannot be had is one sentence that says what exists."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from isoscope.data.audio import sounds
from isoscope.data.documents import documents
from isoscope.data.image import images
from isoscope.errors import IsoscopeError
from tests.data.test_images import process
from tests.data.test_sounds import extract
from tests.data.written import Write, as_lines, as_parquet, as_saved, datasets, picture, png, table


def test_other_recordings_want_soundfile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    folder = as_parquet(table(audio=[{"bytes": b"fLaC", "path": "a.flac"}]), tmp_path / "d")
    with pytest.raises(IsoscopeError, match=r"recordings other than WAV needs soundfile: install isoscope\["):
        sounds(f"{folder}:train:audio", extract)


@pytest.mark.parametrize("write", [as_parquet, as_lines, as_saved])
def test_what_does_not_exist_is_named_with_what_does(tmp_path: Path, write: Write) -> None:
    folder = write(table(text=["a"], number=[1]), tmp_path / "d")
    for address, told in {
        ":tset:text": f"no split of '{folder}' is called 'tset'; did you mean 'test'? "
        "There are: test, train.",
        ":test:tekst": f"no column of '{folder}' is called 'tekst'; did you mean 'text'? "
        "There are: number, text.",
        ":test:number": f"column 'number' of '{folder}' holds int64, and this model takes text; "
        "columns of text there: text.",
    }.items():
        with pytest.raises(IsoscopeError) as error:
            documents(f"{folder}{address}")
        assert str(error.value) == told


def test_a_column_of_another_kind_than_the_model_takes(tmp_path: Path) -> None:
    made = table(text=["a"], image=[{"bytes": png(picture()), "path": None}], audio=[None])
    folder = as_parquet(made, tmp_path / "d")
    for ask, column, told in (
        (documents, "audio", "'audio' of .* holds recordings, and this model takes text; .* there: text."),
        (documents, "image", "'image' of .* holds pictures, and this model takes text; .* there: text."),
        (lambda a: images(a, process), "text", "holds text, and this model takes pictures; .* there: image."),
        (
            lambda a: sounds(a, extract),
            "text",
            "holds text, and this model takes recordings; .* there: audio.",
        ),
    ):
        with pytest.raises(IsoscopeError, match=told):
            ask(f"{folder}:train:{column}")


def test_folders_that_are_no_dataset(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "train.parquet").write_bytes(b"PAR1")
    (tmp_path / "a.txt").write_text("x")
    saved = as_saved(table(text=["a"]), tmp_path / "saved")
    for address, told in {
        "empty:train:text": "cannot read the dataset '.*empty': The directory at .* doesn't contain any data",
        "broken:train:text": "cannot read the dataset '.*broken': ",
        "a.txt:train:text": "a.txt' is a file; a dataset is a folder or a hub id.",
        "saved@small:train:text": "was written by save_to_disk and has no configuration 'small'; leave it",
        "no/such/folder:train:text": r"no dataset '.*': there is no such folder here, and it is no hub id",
    }.items():
        with pytest.raises(IsoscopeError, match=told) as error:
            list(documents(f"{tmp_path}/{address}"))
        assert "\n" not in str(error.value)
    (saved / "train" / "data-00000-of-00001.arrow").write_bytes(b"no arrow")
    with pytest.raises(IsoscopeError, match=r"cannot read the dataset '.*saved': "):
        list(documents(f"{saved}:train:text"))


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(IsoscopeError) as error:
        documents("owner/name:test:text")
    assert str(error.value) == (
        "reading the dataset 'owner/name' needs the library datasets: install isoscope[datasets]."
    )


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (datasets.exceptions.DatasetNotFoundError("x"), "no dataset 'o/n': .* the hub has none of that name"),
        (datasets.exceptions.DatasetNotFoundError("a gated dataset"), "'o/n' is gated: log in with `hf auth"),
        (
            ConnectionError("x"),
            "no dataset 'o/n': there is no such folder here, and the hub cannot be reached",
        ),
        (RuntimeError("Dataset scripts.\nmore"), "cannot read the dataset 'o/n': Dataset scripts.$"),
    ],
    ids=range(4),
)
def test_what_the_hub_says(monkeypatch: pytest.MonkeyPatch, reason: Exception, told: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise reason

    monkeypatch.setattr("datasets.load_dataset", refuse)
    with pytest.raises(IsoscopeError, match=told):
        documents("o/n:test:text")
