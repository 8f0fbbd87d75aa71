"""Pictures as data: what is read, what is left out and named, and keys by content."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from isoscope.data.counting import tokens_before
from isoscope.data.image import images
from isoscope.errors import IsoscopeError


def process(images: list[Image.Image], return_tensors: str) -> dict[str, torch.Tensor]:
    """The plainest processor there is."""
    return {
        "pixel_values": torch.stack(
            [torch.tensor(np.array(i.resize((16, 16)))).movedim(-1, 0) for i in images]
        )
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    for mode, name in (
        ("RGB", "a.png"),
        ("L", "b.png"),
        ("CMYK", "c.jpg"),
        ("1", "d.bmp"),
        ("RGBA", "deep/e.png"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(random.integers(0, 255, (9, 12, 3), dtype=np.uint8)).convert(mode).save(
            tmp_path / name
        )
    (tmp_path / "notes.txt").write_text("no picture")
    return tmp_path


def test_every_kind_of_picture_is_read(folder: Path) -> None:
    data = images(str(folder), process, batch_size=2)
    assert data.size == 5
    assert [batch.inputs["pixel_values"].shape for batch in data] == [
        (2, 3, 16, 16),
        (2, 3, 16, 16),
        (1, 3, 16, 16),
    ]
    assert data.notes == ()


def test_a_broken_picture_is_left_out_and_named(folder: Path) -> None:
    (folder / "aa.png").write_bytes((folder / "a.png").read_bytes()[:60])
    (folder / "ab.jpg").write_text("not at all")
    data = images(str(folder), process)
    assert data.size == 5
    assert data.notes == ("pictures that cannot be read are left out: 2, first aa.png",)


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match="holds no pictures"):
        images(str(tmp_path), process)
    with pytest.raises(IsoscopeError, match="no data at"):
        images(str(tmp_path / "absent"), process)
    (tmp_path / "a.png").write_text("not a picture")
    with pytest.raises(IsoscopeError, match="holds no picture that can be read"):
        images(str(tmp_path), process)


def test_keys_and_hash_follow_content_not_batches(folder: Path) -> None:
    keys = [
        torch.cat([b.keys for b in images(str(folder), process, batch_size=n)]).tolist() for n in (1, 2, 5)
    ]
    assert keys[0] == keys[1] == keys[2]
    assert len(set(keys[0])) == 5
    before = images(str(folder), process).facts()["data_hash"]
    assert before == images(str(folder), process).facts()["data_hash"]
    (folder / "a.png").unlink()
    assert before != images(str(folder), process).facts()["data_hash"]


def test_embedded_digits() -> None:
    data = images("embedded", process, limit=7)
    assert data.size == 7
    assert next(iter(data)).inputs["pixel_values"].float().std() > 1


@pytest.mark.parametrize(
    ("length", "patches", "before"),
    [(196, 196, 0), (197, 196, 1), (198, 196, 2), (201, 196, 5), (49, 196, 0), (50, 196, 1), (5, 7, 0)],
)
def test_tokens_before_the_patches(length: int, patches: int, before: int) -> None:
    assert tokens_before(length, patches) == before
