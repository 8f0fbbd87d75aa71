"""Every reading a second time, by hand: plain transformers, numpy in float64, all pairs, all singular values.

Nothing of isoscope makes a number here; its keys only say which sequence falls into which half. The
text is cut, framed, padded and masked here too, from the same file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

import isoscope
from isoscope.data.keys import content_keys

Array = npt.NDArray[np.float64]
RELATIVE, ABSOLUTE = 1e-5, 1e-6
# Roots of eigenvalues: where a norm before the site takes one dimension away, that eigenvalue is rounding
# (1e-14 of the largest), and its root moves these two by some 1e-9.
OF_ROOTS = {"effective_rank", "rankme"}


def write_topics(path: Path, lines: int, *, least: int = 1) -> str:
    """Ragged lines of the documentation that comes with Python."""
    from pydoc_data.topics import topics

    found = [line.strip() for name in sorted(topics) for line in topics[name].splitlines()]
    found = [line for line in found if len(line) >= least]
    path.write_text("\n".join(dict.fromkeys(found[: 3 * lines : 3])) + "\n")
    return str(path)


def sequences(file: str, tokenizer: Any, *, pack: bool, length: int, limit: int) -> list[list[int]]:
    """The token ids of each sequence, special tokens at both ends."""
    text = Path(file).read_text()
    start, end = tokenizer.cls_token_id, tokenizer.sep_token_id
    if pack:
        stream = tokenizer(text, add_special_tokens=False)["input_ids"]
        pieces = [stream[at : at + length - 2] for at in range(0, len(stream), length - 2)]
    else:
        pieces = [
            tokenizer(line, add_special_tokens=False)["input_ids"][: length - 2] for line in text.splitlines()
        ]
    return [[start, *piece, end] for piece in pieces[:limit]]


def clouds(model: Any, tokenizer: Any, rows: Sequence[Sequence[int]]) -> tuple[list[Array], Array]:
    """The vectors that count at each layer [n, d], and the sequence of each [n]; eight at a time."""
    special = set(tokenizer.all_special_ids)
    layers: list[list[Array]] = []
    label: list[int] = []
    for at in range(0, len(rows), 8):
        some = rows[at : at + 8]
        longest = max(map(len, some))
        ids = torch.tensor([[*row, *[tokenizer.pad_token_id] * (longest - len(row))] for row in some])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in some])
        with torch.no_grad():
            states = model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
        places = [
            (i, t)
            for i, row in enumerate(some)
            for t, token in enumerate(row)
            if t > 0 and token not in special
        ]
        label += [at + i for i, _ in places]
        layers.append([np.stack([state[i, t].double().numpy() for i, t in places]) for state in states])
    return [np.concatenate(parts) for parts in zip(*layers, strict=True)], np.array(label)


def halves(rows: Sequence[Sequence[int]], seed: int) -> Array:
    """Which half each sequence is in."""
    return np.array([int(content_keys(torch.tensor([row]), seed)) // 32 % 2 for row in rows])


def readings(x: Array, label: Array, half: Array) -> dict[str, float]:
    """Every measure of one cloud, each from its definition."""
    n, width = x.shape
    norm = np.sqrt((x**2).sum(1))
    unit = x / norm[:, None]
    cosines = unit @ unit.T
    apart = ~np.eye(n, dtype=bool)
    foreign = label[:, None] != label[None, :]
    by_dimension = [
        float((np.outer(unit[:, k], unit[:, k])[apart]).mean()) for k in np.argsort(-np.abs(unit.mean(0)))[:5]
    ]
    centred = x - x.mean(0)
    centred_values = np.linalg.svd(centred, compute_uv=False)
    values = np.linalg.svd(x, compute_uv=False)
    power = centred_values**2
    ratio = power.sum() ** 2 / (power**2).sum()
    first, second = (np.cov(x[half[label] == h], rowvar=False) for h in (0, 1))
    return {
        "mean_cosine": cosines[apart].mean(),
        "mean_cosine_between": cosines[foreign].mean(),
        "cosine_variance": cosines[apart].var(),
        "rogue_contribution": max(by_dimension),
        "drift": np.linalg.norm(x.mean(0)),
        "relative_drift": np.linalg.norm(x.mean(0)) / norm.mean(),
        "mean_norm": norm.mean(),
        "isoscore": (ratio - 1) / (width - 1),
        "participation_ratio": ratio,
        "participation_ratio_split": np.trace(first) * np.trace(second) / np.trace(first @ second),
        "effective_rank": _exp_entropy(centred_values),
        "rankme": _exp_entropy(values),
        "stable_rank": (values**2).sum() / values.max() ** 2,
        "top_share": power.max() / power.sum(),
        "intra_similarity": float(np.mean([_alike(x[label == s]) for s in np.unique(label)])),
        "rank_residual": float(np.mean([_residual(x[label == s]) for s in np.unique(label)])),
        "not_finite": float((~np.isfinite(x)).any(1).sum()),
        "zero_vectors": float((norm == 0).sum()),
    }


def _alike(x: Array) -> float:
    mean = x.mean(0)
    return float(np.mean(x @ mean / np.linalg.norm(x, axis=1) / np.linalg.norm(mean)))


def _residual(x: Array) -> float:
    return float(np.sqrt(((x - x.mean(0)) ** 2).sum() / (x**2).sum()))


def _exp_entropy(values: Array) -> float:
    share = values[values > 0] / values.sum()
    return float(np.exp(-(share * np.log(share)).sum()))


def assert_same(table: Any, expected: Mapping[int, Mapping[str, float]], n: int) -> None:
    """A table of rows holds these readings and no others, all of n vectors."""
    assert set(table.measure) == {name for reading in expected.values() for name in reading}
    assert len(table) == sum(map(len, expected.values()))
    for row in table.itertuples():
        there = expected[row.layer][row.measure]
        assert row.value == pytest.approx(there, rel=RELATIVE, abs=ABSOLUTE), (row.layer, row.measure)
        assert row.n == n, (row.layer, row.measure)


def assert_tables_agree(a: Any, b: Any, relative: float, absolute: float) -> None:
    """Two tables hold the same rows: values, nulls and intervals within the tolerance, the rest equal."""
    for name in ("kind", "layer", "measure", "n", "note"):
        assert a[name].tolist() == b[name].tolist(), name
    for name in ("value", "null", "low", "high"):
        mine, other = a[name].to_numpy(float), b[name].to_numpy(float)
        reach = np.maximum(relative * np.abs(other), absolute)
        off = ~((np.abs(mine - other) <= reach) | (np.isnan(mine) & np.isnan(other)))
        assert not off.any(), f"{name}:\n{a[off]}\n{b[off]}"


def assert_merged(a: Any, b: Any) -> None:
    """Two tables of the same hidden states, summed in another order: 1e-9 relative."""
    roots = a.measure.isin(OF_ROOTS)
    assert_tables_agree(a[~roots], b[~roots], 1e-9, 1e-12)
    assert_tables_agree(a[roots], b[roots], 1e-7, 1e-12)


def check(folder: str, file: str, *, pack: bool, length: int, limit: int) -> None:
    """Every reading of the model in `folder` over `file`, whatever the batch size and the order."""
    loaded = isoscope.load(folder)
    rows = sequences(file, loaded.tokenizer, pack=pack, length=length, limit=limit)
    states, label = clouds(loaded.module, loaded.tokenizer, rows)
    half = halves(rows, seed=0)
    expected = {layer: readings(x, label, half) for layer, x in enumerate(states)}
    tables = []
    for size in (1, 7, 32):
        data = isoscope.text(
            file, loaded.tokenizer, pack=pack, max_length=length, limit=limit, batch_size=size
        )
        assert [row.tolist() for row in data.sequences] == [list(row) for row in rows]
        if not pack and size > 1:
            assert any(bool((batch.inputs["attention_mask"] == 0).any()) for batch in data), "no padding"
        tables.append(isoscope.observe(loaded, data).frame())
        assert_same(tables[-1], expected, len(label))
    shuffled = isoscope.text(file, loaded.tokenizer, pack=pack, max_length=length, limit=limit, batch_size=7)
    batches = list(shuffled)
    tables.append(isoscope.observe(loaded, batches[::-1]).frame())
    assert_same(tables[-1], expected, len(label))
    for table in tables[1:]:
        assert_tables_agree(table, tables[0], RELATIVE, ABSOLUTE)
