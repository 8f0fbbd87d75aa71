"""The definition itself, against one row at a time in plain Python."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from isoscope.geometry.attention import AttentionRows, attention_rows, hidden_at_most, score_rows
from tests.kernels.attention_cases import CASES, Case, heads


def scores_and_visible(q: Tensor, k: Tensor, i: int, options: dict[str, Any], at: int) -> list[float | None]:
    """One row of scores, None where a key is hidden; q [t, e], k [s, e], terms [t, s]."""
    scale = options.get("scale") or 1 / math.sqrt(q.shape[1])
    row: list[float | None] = []
    for j in range(len(k)):
        score = scale * math.fsum(x * y for x, y in zip(q[i].tolist(), k[j].tolist(), strict=True))
        if options.get("softcap"):
            score = options["softcap"] * math.tanh(score / options["softcap"])
        visible = j < options.get("key_length", len(k))
        if options.get("causal"):
            visible &= j <= at
        if options.get("window"):
            visible &= abs(at - j) < options["window"]
        for name in ("mask", "bias", "key_bias"):
            if name not in options:
                continue
            term, value = options[name], options[name][i, j].item()
            if term.dtype == torch.bool:
                visible &= value
                continue
            visible &= not (name == "mask" and value <= hidden_at_most(term.dtype))
            score += value
        row.append(score if visible else None)
    return row


def statistics(row: list[float | None], at: int, first: int | None) -> dict[str, float]:
    seen = {j: score for j, score in enumerate(row) if score is not None}
    if not seen:
        return dict.fromkeys(AttentionRows.__dataclass_fields__, math.nan) | {"visible": 0}
    top, n = max(seen.values()), len(seen)
    total = math.fsum(math.exp(score - top) for score in seen.values())
    p = {j: math.exp(score - top) / total for j, score in seen.items()}
    mean = math.fsum(seen.values()) / n
    return {
        "lse": top + math.log(total),
        "entropy": -math.fsum(w * math.log(w) for w in p.values() if w > 0),
        "largest": max(p.values()),
        "collision": math.fsum(w * w for w in p.values()),
        "max_score": top,
        "score_variance": math.fsum((score - mean) ** 2 for score in seen.values()) / n,
        "first_key": math.nan if first is None else p.get(first, math.nan),
        "visible": n,
        "distance": math.fsum(w * abs(at - j) for j, w in p.items()),
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_row_at_a_time(case: Case) -> None:
    t, s = min(case.t, 9), min(case.s, 13)
    if case.name == "left-padded mask":
        t = s = 26
    generator = torch.Generator().manual_seed(8)
    options = case.options(generator, t, s)
    q, k = heads(generator, t, s, scale=options.get("scale"))
    rows = attention_rows(q, k, **options)
    for b, h in ((0, 1), (1, 2)):
        mine = {
            name: value.expand(2, 4, t, s)[b, h] if name in ("mask", "bias", "key_bias") else value
            for name, value in options.items()
        }
        if "key_lengths" in options:
            mine["key_length"] = int(options["key_lengths"][b])
        shift = s - t if options.get("causal") else 0
        table = [scores_and_visible(q[b, h], k[b, h // 2], i, mine, i + shift) for i in range(t)]
        first = min((j for row in table for j, score in enumerate(row) if score is not None), default=None)
        for i, row in enumerate(table):
            for name, value in statistics(row, i + shift, first).items():
                found = float(getattr(rows, name)[b, h, i])
                assert found == pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True), (name, b, h, i)


def test_the_first_key_is_the_first_that_anyone_sees() -> None:
    mask = torch.tensor(
        [[False, False, False, False], [False, False, True, True], [False, False, False, True]]
    )
    rows = score_rows(torch.zeros(1, 1, 3, 4), mask=mask)
    assert rows.first_key[0, 0].isnan().tolist() == [True, False, True]
    assert float(rows.first_key[0, 0, 1]) == 0.5
    assert rows.visible[0, 0].tolist() == [0, 2, 1]


def test_a_causal_query_stands_at_the_end_of_its_keys() -> None:
    rows = score_rows(torch.zeros(1, 1, 2, 4), causal=True)
    assert rows.visible[0, 0].tolist() == [3, 4]
    assert rows.distance[0, 0].tolist() == [1.0, 1.5]


def test_a_row_with_infinity_is_nan_and_keeps_its_count() -> None:
    scores = torch.zeros(1, 1, 3, 4)
    scores[0, 0, 0, 1], scores[0, 0, 1, 2] = math.inf, math.nan
    rows = score_rows(scores)
    for name in AttentionRows.__dataclass_fields__:
        finite = getattr(rows, name)[0, 0].isfinite().tolist()
        assert finite == [name == "visible"] * 2 + [True]
    assert rows.visible[0, 0].tolist() == [4, 4, 4]
