"""A model whose convolutions would see padding gets sequences of one length at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isoscope
from isoscope.models.inputs import open_data
from tests.models import tiny


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("lines") / "lines.txt"
    file.write_text("\n".join("abcdefghijklmnop"[: 6 + i % 9] + "xyz"[i % 3] for i in range(30)))
    return str(file)


def test_canine_reads_the_same_whatever_the_batch_size(lines: str, tmp_path: Path) -> None:
    tiny.save("canine", tmp_path)
    model = isoscope.load(str(tmp_path))
    tables = []
    for size in (1, 4, 30):
        data = open_data(lines, model, pack=False, batch_size=size)
        assert all(bool(batch.inputs["attention_mask"].all()) for batch in data)
        assert len(data) == len(list(data))
        tables.append(isoscope.observe(model, data, measures=["mean_cosine", "drift"]).frame().value)
    for table in tables[1:]:
        assert np.allclose(table, tables[0], rtol=1e-5, atol=1e-6)


def test_padded_together_it_would_not(lines: str, tmp_path: Path) -> None:
    tiny.save("canine", tmp_path)
    model = isoscope.load(str(tmp_path))
    tables = [
        isoscope.observe(
            model, isoscope.text(lines, model.tokenizer, pack=False, batch_size=size), measures=["drift"]
        ).frame()
        for size in (1, 30)
    ]
    assert not np.allclose(tables[0].value, tables[1].value, rtol=1e-5, atol=1e-6)


def test_other_models_are_padded_together(lines: str, tmp_path: Path) -> None:
    tiny.save("bert", tmp_path)
    data = open_data(lines, isoscope.load(str(tmp_path)), pack=False, batch_size=30)
    assert len(data) == 1
