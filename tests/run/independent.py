"""Every reading a second time, by hand: plain transformers, numpy in float64, all pairs, all singular values.

Nothing of isoscope makes a number here; its keys only say which sequence falls into which half. The
text is cut, framed, padded and masked here too, from the same file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from sklearn.cluster import KMeans

import isoscope
from isoscope.data.keys import content_keys, dealt_units, unit_keys
from isoscope.stats.reservoir import Reservoir
from isoscope.stats.seen import mix
from tests.laws.law_measures import KINDS, MEASURES

Array = npt.NDArray[np.float64]
RELATIVE, ABSOLUTE = 1e-5, 1e-6
LAYERS = "layer.*,output"
# Roots of eigenvalues: where a norm before the site takes one dimension away, that eigenvalue is rounding
# (1e-14 of the largest), and its root moves these two by some 1e-9.
OF_ROOTS = {"effective_rank", "rankme"}
OF_ALL = {name for name, kind in KINDS.items() if kind.of_vectors} - {
    measure.name for measure in MEASURES if Reservoir in measure.stats
}


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


@dataclass(frozen=True)
class Origin:
    """Where the vectors of a cloud come from: the sequence, its half, the token and the place of each [n].

    `apart` [n] numbers what pairs must not share: the sequence, or the jackknife group where chunks are cut
    from one text.
    """

    label: Array
    apart: Array
    half: Array
    token: Array
    place: Array


def units(rows: Sequence[Sequence[int]], *, pack: bool) -> list[int]:
    """The hash of each sequence's unit: its own key, or one of its block of n^⅓ neighbouring chunks."""
    keys = [int(content_keys(torch.tensor([row]), 0)) for row in rows]
    size = round(len(rows) ** (1 / 3)) if pack else 1
    blocks = [keys[start : start + size] for start in range(0, len(keys), size)]
    labels = [int(content_keys(torch.tensor([block]), 0)) for block in blocks for _ in block]
    return unit_keys(labels, torch.tensor(keys), dealt_units(labels)).tolist()


def clouds(
    model: Any, tokenizer: Any, rows: Sequence[Sequence[int]], *, pack: bool
) -> tuple[list[Array], Origin]:
    """The vectors that count at each layer [n, d], and where they come from; eight at a time."""
    unit = units(rows, pack=pack)
    special = set(tokenizer.all_special_ids)
    layers: list[list[Array]] = []
    origin: list[tuple[int, int, int, int, int]] = []
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
        for i, t in places:
            key = content_keys(torch.tensor([some[i]]), 0)
            number = 1 + sum(token not in special for token in some[i][1:t])  # of those that count
            place = int(mix(key + mix(torch.tensor([number + (2 << 32)]))))  # at the full length of the text
            own = unit[at + i]
            origin.append((at + i, own % 32 if pack else at + i, own // 32 % 2, some[i][t], place))
        layers.append([np.stack([state[i, t].double().numpy() for i, t in places]) for state in states])
    whence = Origin(*(np.array(column) for column in zip(*origin, strict=True)))
    return [np.concatenate(parts) for parts in zip(*layers, strict=True)], whence


def readings(x: Array, origin: Origin, previous: Array | None, first: Array | None) -> dict[str, float]:
    """Every measure of one cloud, each from its definition; CKA where there are layers before it."""
    (n, width), label = x.shape, origin.label
    norm = np.sqrt((x**2).sum(1))
    unit = x / norm[:, None]
    cosines = unit @ unit.T
    apart = ~np.eye(n, dtype=bool)
    foreign = origin.apart[:, None] != origin.apart[None, :]
    by_dimension = [
        float((np.outer(unit[:, k], unit[:, k])[apart]).mean()) for k in np.argsort(-np.abs(unit.mean(0)))[:5]
    ]
    centred = x - x.mean(0)
    centred_values = np.linalg.svd(centred, compute_uv=False)
    values = np.linalg.svd(x, compute_uv=False)
    power = centred_values**2
    ratio = power.sum() ** 2 / (power**2).sum()
    one, two = (np.cov(x[origin.half == h], rowvar=False) for h in (0, 1))
    between = cosines[foreign].mean()
    inside = float(np.mean([_alike(x[label == s]) for s in np.unique(label)]))
    return {
        "mean_cosine": cosines[apart].mean(),
        "mean_cosine_between": between,
        "cosine_variance": cosines[apart].var(),
        "rogue_contribution": max(by_dimension),
        "drift": np.linalg.norm(x.mean(0)),
        "relative_drift": np.linalg.norm(x.mean(0)) / norm.mean(),
        "mean_norm": norm.mean(),
        "isoscore": (ratio - 1) / (width - 1),
        "participation_ratio": ratio,
        "participation_ratio_split": np.trace(one) * np.trace(two) / np.trace(one @ two),
        "effective_rank": _exp_entropy(centred_values),
        "rankme": _exp_entropy(values),
        "stable_rank": (values**2).sum() / values.max() ** 2,
        "top_share": power.max() / power.sum(),
        "spectral_exponent": _exponent(power),
        "intra_similarity": inside,
        "intra_similarity_adjusted": inside - between,
        "rank_residual": float(np.mean([_residual(x[label == s]) for s in np.unique(label)])),
        "isoscore_star": _isoscore_star(x),
        "outlier_dimensions": float((x.var(0) >= 5 * x.var(0).mean()).sum()),
        "massive_activations": float(sum(_massive(x[label == s]) for s in np.unique(label))),
        "largest_activation": float(np.abs(x).max()),
        **of_types(x, unit, origin, between),
        **of_sample(x, origin.place, previous, first),
        "not_finite": float((~np.isfinite(x)).any(1).sum()),
        "zero_vectors": float((norm == 0).sum()),
    }


def of_types(x: Array, unit: Array, origin: Origin, between: float) -> dict[str, float]:
    """What is read off token types, of all there are (fewer than the sample holds)."""
    names, count = np.unique(origin.token, return_counts=True)
    assert len(names) <= 1024
    alike = []
    for name in names:
        mine = origin.token == name
        cosines = (unit[mine] @ unit[mine].T)[origin.label[mine][:, None] != origin.label[mine][None, :]]
        alike += [cosines.mean()] if cosines.size else []
    means = np.stack([x[origin.token == name].mean(0) for name in names])
    units = np.stack([unit[origin.token == name].mean(0) for name in names])
    norms = np.array([np.linalg.norm(x[origin.token == name], axis=1).mean() for name in names])
    along = [mean @ (means.sum(0) - mean) for mean in means]
    found = {
        "self_similarity": float(np.mean(alike)) if alike else np.nan,
        "self_similarity_adjusted": float(np.mean(alike)) - between if alike else np.nan,
        "frequency_correlation": float(np.corrcoef(along, np.log(count))[0, 1]) if len(names) > 7 else np.nan,
    }
    share = count / len(x)
    for band, mine in {
        "rare": share < 1e-4,
        "middle": (share >= 1e-4) & (share < 1e-3),
        "frequent": share >= 1e-3,
    }.items():
        pairs = (units[mine] @ units[mine].T)[~np.eye(mine.sum(), dtype=bool)]
        found[f"mean_cosine_{band}"] = float(pairs.mean()) if pairs.size else np.nan
        drift = np.linalg.norm(means[mine].mean(0)) / norms[mine].mean() if mine.any() else np.nan
        found[f"relative_drift_{band}"] = float(drift)
    return found


def of_sample(x: Array, place: Array, previous: Array | None, first: Array | None) -> dict[str, float]:
    """What is read off the vectors at the smallest places."""
    order = np.argsort(place, kind="stable")[:2048]
    y = x[order]
    unit = y / np.linalg.norm(y, axis=1, keepdims=True)
    apart = ~np.eye(len(y), dtype=bool)
    found = {
        "uniformity": float(np.log(np.exp(-2 * (2 - 2 * unit @ unit.T))[apart].mean())),
        **_dimensions(_once(y)),
        "cluster_cosine": _inside_clusters(y),
    }
    if previous is not None and first is not None:
        found |= {"cka_previous": _cka(y, previous[order]), "cka_first": _cka(y, first[order])}
    vectors = np.linalg.eigh(y.T @ y)[1].T
    vectors *= np.sign(vectors[np.arange(len(vectors)), np.abs(vectors).argmax(1)])[:, None]
    both = np.concatenate([vectors, -vectors])
    size = np.linalg.norm(y, axis=1).mean()
    found["partition_isotropy"] = _evenness(y @ both.T)
    found["partition_isotropy_one_sign"] = _evenness(y @ vectors.T)
    found["partition_isotropy_unit"] = _evenness(y @ both.T / size)
    total, values = np.linalg.norm(x.sum(0)), np.linalg.eigvalsh(x.T @ x)
    found["partition_isotropy_first"] = (len(x) - total) / (len(x) + total)
    found["partition_isotropy_second"] = float(
        (len(x) - total + values[0] / 2) / (len(x) + total + values[-1] / 2)
    )
    return found


def _evenness(scores: Array) -> float:
    top = scores.max()
    size = np.exp(scores - top).sum(0)
    logs = np.log(size)
    return float(np.exp(logs.min() - logs.max()))


def _once(y: Array) -> Array:
    """Vectors that differ by more than rounding from those before them."""
    same = 1e-5 * np.sqrt(((y - y.mean(0)) ** 2).sum(1).mean())
    return np.stack([x for i, x in enumerate(y) if i == 0 or np.linalg.norm(y[:i] - x, axis=1).min() > same])


def _dimensions(y: Array) -> dict[str, float]:
    if len(y) <= 20:
        return {"intrinsic_dimension": np.nan, "local_dimension": np.nan}
    near = np.sort(np.stack([np.linalg.norm(y - point, axis=1) for point in y]), axis=1)[:, 1:21]
    ratio = np.log(np.sort(near[:, 1] / near[:, 0])[: int(0.9 * len(y))])
    tail = -np.log(1 - np.arange(len(y)) / len(y))[: len(ratio)]
    local = -1 / np.log(near / near[:, -1:]).mean(1)
    return {
        "intrinsic_dimension": float(ratio @ tail / (ratio @ ratio)),
        "local_dimension": float(local.mean()),
    }


def _inside_clusters(y: Array) -> float:
    if len(y) < 32:
        return np.nan
    centred = y - y.mean(0)
    rounded = (centred / np.sqrt((centred**2).sum(1).mean())).round(4)
    label = KMeans(8, n_init=1, random_state=0).fit_predict(rounded)
    cosines = []
    for name in range(8):
        mine = y[label == name] - y[label == name].mean(0)
        mine = mine[np.linalg.norm(mine, axis=1) > 1e-4 * np.sqrt((centred**2).sum(1).mean())]
        unit = mine / np.linalg.norm(mine, axis=1, keepdims=True)
        cosines += list((unit @ unit.T)[~np.eye(len(unit), dtype=bool)])
    return float(np.mean(cosines))


def _cka(x: Array, y: Array) -> float:
    n = len(x)
    if n < 4:
        return np.nan

    def hsic(one: Array, two: Array) -> float:
        one, two = one * (1 - np.eye(n)), two * (1 - np.eye(n))
        cross = one.sum() * two.sum() / ((n - 1) * (n - 2))
        return float(np.trace(one @ two) + cross - 2 / (n - 2) * one.sum(0) @ two.sum(1))

    one, two = ((z - z.mean(0)) @ (z - z.mean(0)).T for z in (x, y))
    return hsic(one, two) / np.sqrt(hsic(one, one) * hsic(two, two))


def _isoscore_star(x: Array) -> float:
    width = x.shape[1]
    spread = np.cov(x, rowvar=False)
    shrunk = 0.8 * spread + 0.2 * np.trace(spread) / width * np.eye(width)
    ratio = np.trace(shrunk) ** 2 / (shrunk**2).sum()
    return float((ratio - 1) / (width - 1))


def _exponent(power: Array) -> float:
    """Numpy weighs residuals, not their squares: by 1/√k."""
    rank = np.arange(4, 101)[: max(0, int((power > 1e-10 * power.max()).sum()) - 3)]
    if len(rank) < 2:
        return np.nan
    return float(-np.polyfit(np.log(rank), np.log(power[rank - 1]), 1, w=rank**-0.5)[0])


def _massive(x: Array) -> int:
    size = np.abs(x)
    middle = np.sort(size, axis=None)[(size.size - 1) // 2]
    return int(((size > 100) & (size >= 1000 * middle)).sum())


def _alike(x: Array) -> float:
    mean = x.mean(0)
    return float(np.mean(x @ mean / np.linalg.norm(x, axis=1) / np.linalg.norm(mean)))


def _residual(x: Array) -> float:
    return float(np.sqrt(((x - x.mean(0)) ** 2).sum() / (x**2).sum()))


def _exp_entropy(values: Array) -> float:
    share = values[values > 0] / values.sum()
    return float(np.exp(-(share * np.log(share)).sum()))


def assert_same(table: Any, expected: Mapping[int, Mapping[str, float]], n: int) -> None:
    """A table of rows holds these readings and no others, of n vectors where vectors are counted."""
    assert set(table.measure) == {name for reading in expected.values() for name in reading}
    assert len(table) == sum(map(len, expected.values()))
    for row in table.itertuples():
        there = expected[row.layer][row.measure]
        here = pytest.approx(there, rel=RELATIVE, abs=ABSOLUTE, nan_ok=True)
        assert row.value == here, (row.layer, row.measure)
        assert row.n == n or row.measure not in OF_ALL, (row.layer, row.measure)


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
    states, origin = clouds(loaded.module, loaded.tokenizer, rows, pack=pack)
    expected = {
        layer: readings(x, origin, states[layer - 1] if layer else None, states[0] if layer else None)
        for layer, x in enumerate(states)
    }
    tables = []
    for size in (1, 7, 32):
        data = isoscope.text(
            file, loaded.tokenizer, pack=pack, max_length=length, limit=limit, batch_size=size
        )
        assert [row.tolist() for row in data.sequences] == [list(row) for row in rows]
        if not pack and size > 1:
            assert any(bool((batch.inputs["attention_mask"] == 0).any()) for batch in data), "no padding"
        tables.append(isoscope.observe(loaded, data, measures="all", layers=LAYERS).frame())
        assert_same(tables[-1], expected, len(origin.label))
    shuffled = isoscope.text(file, loaded.tokenizer, pack=pack, max_length=length, limit=limit, batch_size=7)
    batches = list(shuffled)
    tables.append(isoscope.observe(loaded, batches[::-1], measures="all", layers=LAYERS).frame())
    assert_same(tables[-1], expected, len(origin.label))
    for table in tables[1:]:
        assert_tables_agree(table, tables[0], RELATIVE, ABSOLUTE)
