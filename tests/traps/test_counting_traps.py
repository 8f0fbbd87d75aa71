"""Traps of what is counted: padding, special tokens, position 0, pairs of one sequence, self-pairs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import isoscope
from tests.models.tiny import EVERY
from tests.traps.trap_models import Letters, Model, token_ids


def values(observation: isoscope.Observation, measure: str) -> np.ndarray:
    table = observation.frame()
    return table[table.measure == measure].value.to_numpy()


def padded(rows: list[torch.Tensor], side: str = "right") -> dict[str, torch.Tensor]:
    length = max(map(len, rows))
    ids, mask = (
        torch.zeros(len(rows), length, dtype=torch.long),
        torch.zeros(len(rows), length, dtype=torch.long),
    )
    for i, row in enumerate(rows):
        mine = slice(0, len(row)) if side == "right" else slice(length - len(row), length)
        ids[i, mine], mask[i, mine] = row, 1
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize("side", ["right", "left"])
def test_trap_padding_counted_as_data(side):
    """Padding is one and the same vector: counted, it makes any cloud look like a cone."""
    model = Model()
    rows = [token_ids(1, length, length)[0] for length in (2, 5, 9, 40)]
    batch = padded(rows, side)
    seen = isoscope.observe(model, [batch], **EVERY)
    alone = isoscope.observe(model, [row[None] for row in rows], **EVERY)
    fallen = isoscope.observe(model, [batch["input_ids"]], **EVERY)
    assert set(seen.frame().query("measure == 'drift'").n) == {sum(map(len, rows))}
    assert np.allclose(seen.frame().value, alone.frame().value, rtol=1e-5, atol=1e-6, equal_nan=True)
    assert (values(fallen, "mean_cosine") > values(seen, "mean_cosine") + 0.2).all()


def test_trap_special_tokens_counted_as_data(tmp_path):
    """A special token at both ends of every sequence is the same vector again and again."""
    file = tmp_path / "lines.txt"
    file.write_text("\n".join("ab cd efgh"[i % 5 : i % 5 + 4] + str(i) for i in range(40)))
    without = isoscope.text(str(file), Letters(), pack=False)
    counted = isoscope.text(str(file), Letters(), pack=False, special=True, first=True)
    tokens = sum(len(row) for row in without.sequences)
    assert set(isoscope.observe(Model(), without).frame().query("measure == 'drift'").n) == {tokens - 2 * 40}
    assert set(isoscope.observe(Model(), counted).frame().query("measure == 'drift'").n) == {tokens}
    assert without.facts()["counting"] == {
        "padding": "left out",
        "special tokens": "left out",
        "position 0": "left out",
    }


def test_trap_position_0_dominates(tmp_path):
    """Where attention parks, one vector a sequence is a thousand times longer and makes the spectrum."""
    file = tmp_path / "text.txt"
    file.write_text("the quick brown fox jumps over the lazy dog. " * 30)
    model = Model(sink=1000.0)
    by_default = isoscope.observe(model, isoscope.text(str(file), Letters(), max_length=34))
    counted = isoscope.observe(
        model, isoscope.text(str(file), Letters(), max_length=34, special=True, first=True)
    )
    plain = isoscope.observe(Model(), isoscope.text(str(file), Letters(), max_length=34))
    assert (values(counted, "top_share")[:4] > 0.99).all()
    assert (values(by_default, "top_share")[:4] < 0.6).all()
    assert (values(counted, "mean_norm")[:4] > 5 * values(by_default, "mean_norm")[:4]).all()
    assert np.allclose(values(by_default, "mean_cosine"), values(plain, "mean_cosine"), rtol=1e-5, atol=1e-6)


def test_trap_pairs_within_a_sequence():
    """Vectors of one sequence are alike: a true .218 reads higher and higher the fewer sequences there are.

    Between sequences it stays .218. The readings are means over as many clouds as make 1,024 sequences.
    """
    random = torch.Generator().manual_seed(0)
    width, length = 64, 32
    drift, own = 0.532, 0.5  # of a vector's variance, half is shared by its sequence

    def cloud(sequences: int) -> torch.Tensor:
        shared = torch.randn(sequences, 1, width, generator=random) * (1 - own) ** 0.5
        noise = shared + torch.randn(sequences, length, width, generator=random) * own**0.5
        noise[..., 0] += drift * width**0.5
        return noise.reshape(-1, width)

    read: dict[int, tuple[float, float]] = {}
    for sequences in (128, 32, 8, 2):
        label = torch.arange(sequences).repeat_interleave(length)
        tables = [
            isoscope.describe(
                cloud(sequences), sequence=label, measures=["mean_cosine", "mean_cosine_between"]
            ).frame()
            for _ in range(max(4, 512 // sequences))
        ]
        read[sequences] = tuple(np.mean([table.value for table in tables], axis=0))
    inflated = [read[sequences][0] for sequences in (128, 32, 8, 2)]
    unbiased = [read[sequences][1] for sequences in (128, 32, 8, 2)]
    assert unbiased == pytest.approx([0.218] * 4, abs=0.012)
    # within a sequence cosines are about .218 + .39, and 1/sequences of all pairs are such
    assert inflated == pytest.approx([0.218 + 0.39 / n for n in (128, 32, 8, 2)], abs=0.02)


def test_trap_self_pairs_in_sampled_cosines():
    """Pairs drawn with replacement meet themselves once in n draws, which adds (1 − A)/n."""
    random = torch.Generator().manual_seed(1)
    points = torch.randn(20, 64, generator=random)
    unit = points / points.norm(dim=1, keepdim=True)
    first, second = torch.randint(0, 20, (2, 100_000), generator=random)
    sampled = float((unit[first] * unit[second]).sum(1).mean())
    exact = float((unit @ unit.T)[~torch.eye(20, dtype=torch.bool)].mean())
    read = isoscope.describe(points, measures=["mean_cosine"]).frame().value[0]
    assert read == pytest.approx(exact, rel=1e-5, abs=1e-6)
    assert sampled == pytest.approx(exact + (1 - exact) / 20, abs=0.005)
    assert abs(sampled - exact) > 0.04


def test_trap_isoscore_fed_transposed():
    """Rows and columns swapped give another IsoScore without a word; here it is remarked."""
    points = torch.randn(400, 6, generator=torch.Generator().manual_seed(2)) * torch.tensor(
        [9.0, 1, 1, 1, 1, 1]
    )
    upright, lying = isoscope.describe(points), isoscope.describe(points.T)
    assert abs(values(upright, "isoscore")[0] - values(lying, "isoscore")[0]) > 0.02
    assert not upright.notes()
    assert any("6 vectors of 400 dimensions: are rows and columns swapped?" in note for note in lying.notes())
    row = lying.frame().set_index("measure").loc["isoscore"]
    assert row.note == "fewer vectors than dimensions"


def test_trap_sample_size_bias_shown_without_its_null():
    """An isotropic space reads IsoScore .19, .50, .79, .94 with more and more vectors; so does its null.

    The largest eigenvalue of one cloud varies by 3 %, so what rests on it alone gets 10 %.
    """
    for n, published in ((64, 0.19), (256, 0.50), (1024, 0.79), (4096, 0.94)):
        points = torch.randn(n, 256, generator=torch.Generator().manual_seed(n))
        table = isoscope.describe(points).frame().set_index("measure")
        row = table.loc["isoscore"]
        assert row.value == pytest.approx(published, abs=0.01)
        assert row.null == pytest.approx(row.value, rel=0.01)
        for name in ("participation_ratio", "effective_rank", "rankme"):
            assert table.loc[name].null == pytest.approx(table.loc[name].value, rel=0.02)
        for name in ("stable_rank", "top_share"):
            assert table.loc[name].null == pytest.approx(table.loc[name].value, rel=0.1)
        assert table.loc["participation_ratio_split"].value == pytest.approx(256, rel=0.15)
