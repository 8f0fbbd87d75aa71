"""Small datasets, written in every way that is read."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.io import wavfile

datasets = pytest.importorskip("datasets", reason="needs datasets")
RANDOM = np.random.default_rng(0)


def picture() -> Image.Image:
    return Image.fromarray(RANDOM.integers(0, 255, (9, 12, 3), dtype=np.uint8))


def png(of: Image.Image) -> bytes:
    stream = io.BytesIO()
    of.save(stream, "PNG")
    return stream.getvalue()


def wav(samples: np.ndarray) -> bytes:
    stream = io.BytesIO()
    wavfile.write(stream, 16_000, (samples * 32767).astype(np.int16))
    return stream.getvalue()


def table(**columns: list[Any]) -> datasets.Dataset:
    made = datasets.Dataset.from_dict(columns)
    kinds = {"image": datasets.Image(), "audio": datasets.Audio(decode=False)}
    for name in kinds.keys() & columns.keys():
        made = made.cast_column(name, kinds[name])
    return made


def as_parquet(made: datasets.Dataset, folder: Path) -> Path:
    folder.mkdir()
    for split in ("train", "test"):
        made.to_parquet(folder / f"{split}.parquet")
    return folder


def as_lines(made: datasets.Dataset, folder: Path) -> Path:
    folder.mkdir()
    for split in ("train", "test"):
        made.to_json(folder / f"{split}.jsonl")
    return folder


def as_csv(made: datasets.Dataset, folder: Path) -> Path:
    folder.mkdir()
    for split in ("train", "test"):
        made.to_csv(folder / f"{split}.csv")
    return folder


def as_saved(made: datasets.Dataset, folder: Path) -> Path:
    datasets.DatasetDict({"train": made, "test": made}).save_to_disk(folder)
    return folder


def as_saved_alone(made: datasets.Dataset, folder: Path) -> Path:
    datasets.Dataset(made.data, split=datasets.Split.TEST).save_to_disk(folder)
    return folder


Write = Callable[[datasets.Dataset, Path], Path]
WAYS: list[Write] = [as_parquet, as_lines, as_csv, as_saved, as_saved_alone]
