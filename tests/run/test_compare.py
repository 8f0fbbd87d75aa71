"""Anisotropy against drift: planted relations come out as such, and equal scipy's."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from isoscope.results.reading import Reading
from isoscope.results.row import Row, frame
from isoscope.run.compare import ALL, EXPLANATIONS, _exact, correlations


def layers(model: str, cosine: np.ndarray, drift: np.ndarray, norm: np.ndarray) -> list[Row]:
    rows = []
    for number, values in enumerate(zip(cosine, drift, drift / norm, strict=True)):
        for measure, value in zip(("mean_cosine", "drift", "relative_drift"), values, strict=True):
            rows.append(
                Row.at("r", model, "", None, "layer", number, None, measure, Reading(float(value), 100))
            )
    return rows


@pytest.fixture
def planted() -> pd.DataFrame:
    random = np.random.default_rng(0)
    relative = np.linspace(0.1, 0.9, 12)
    norm = random.uniform(1, 2, 12)
    tied = layers("tied", relative**2, relative * norm, norm)
    centred = layers("centred", random.uniform(0.2, 0.8, 12), random.uniform(0, 0.01, 12), norm)
    return frame([*tied, *centred])


def test_a_tied_model_and_a_centred_one(planted: pd.DataFrame) -> None:
    found = frame(correlations(planted)).set_index(["model", "measure"]).value
    assert found["tied", "spearman_relative_drift"] == pytest.approx(1.0)
    assert found["tied", "pearson_relative_drift"] > 0.95
    assert abs(found["centred", "spearman_relative_drift"]) < 0.6
    assert abs(found["centred", "pearson_drift"]) < 0.6


def test_equal_to_scipy_and_marked_nominal(planted: pd.DataFrame) -> None:
    found = frame(correlations(planted)).set_index(["model", "measure"])
    wide = planted.pivot_table(index=["model", "layer"], columns="measure", values="value")
    for name, part in (("tied", wide.loc["tied"]), ("centred", wide.loc["centred"]), (ALL, wide)):
        for drift in ("drift", "relative_drift"):
            for kind, test in (("spearman", stats.spearmanr), ("pearson", stats.pearsonr)):
                row = found.loc[(name, f"{kind}_{drift}")]
                expected = test(part.mean_cosine, part[drift])
                assert row.value == pytest.approx(expected.statistic)
                assert row.note == f"nominal p = {expected.pvalue:.2g}"
                assert row.n == len(part)


def test_too_little_is_undefined_with_its_reason() -> None:
    two = frame(layers("two", np.array([0.1, 0.2]), np.array([1.0, 2.0]), np.ones(2)))
    same = frame(layers("same", np.full(5, 0.1), np.arange(5.0), np.ones(5)))
    for table in (two, same):
        rows = correlations(table)
        assert all(np.isnan(row.value) and row.note == "needs 3 layers that differ" for row in rows)
    assert {row.model for row in correlations(two)} == {"two"}  # nothing pooled over one model
    without = two[two.measure != "drift"]
    assert correlations(without)[0].note == "needs mean_cosine and drift"


def test_every_correlation_is_explained(planted: pd.DataFrame) -> None:
    assert {row.measure for row in correlations(planted)} == set(EXPLANATIONS)
    assert all("nominal" in str(words["misleads"]) for words in EXPLANATIONS.values())


def test_p_of_few_layers_is_counted_out() -> None:
    """Three points in line are so by chance one time in three; the usual formula says never."""
    x = np.array([1.0, 2.0, 3.0])
    assert _exact(x, 2 * x) == pytest.approx(1 / 3)
    random = np.random.default_rng(0)
    x, y = random.normal(size=5), random.normal(size=5)
    found = abs(np.corrcoef(x, y)[0, 1])
    as_strong = [abs(np.corrcoef(x, order)[0, 1]) >= found - 1e-12 for order in permutations(y)]
    assert _exact(x, y) == pytest.approx(np.mean(as_strong))
