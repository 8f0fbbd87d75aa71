"""The linear reader against scikit-learn, and what a judged example may not touch."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from isoscope.errors import IsoscopeError
from isoscope.repair.impact.probe import FOLDS, READERS, choose, fit_line, folds, probe

Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def drawn(classes: int = 3, n: int = 400, d: int = 9, noise: float = 2.0, seed: int = 0) -> Data:
    random = np.random.default_rng(seed)
    centres = random.standard_normal((classes, d))
    labels = random.integers(0, classes, n)
    points = centres[labels] + noise * random.standard_normal((n, d))
    points = points @ (random.standard_normal((d, d)) * np.geomspace(0.05, 20, d)) + 4
    cut = n * 2 // 3
    return points[:cut], labels[:cut], points[cut:], labels[cut:]


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("strength", [0.1, 30.0])
def test_probabilities_are_those_of_scikit_learn(classes: int, strength: float) -> None:
    fitted, labels, judged, _ = drawn(classes)
    told = np.exp(fit_line(fitted, labels, classes, "standardised", strength).log_probabilities(judged))
    scale = StandardScaler().fit(fitted)
    penalty = strength if classes > 2 else strength / 2  # two columns of weights share what one carries there
    other = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=5000).fit(scale.transform(fitted), labels)
    np.testing.assert_allclose(told, other.predict_proba(scale.transform(judged)), atol=2e-5)


def test_without_a_penalty_too() -> None:
    fitted, labels, judged, _ = drawn(3)
    told = np.exp(fit_line(fitted, labels, 3, "unpenalised", 0.0).log_probabilities(judged))
    scale = StandardScaler().fit(fitted)
    other = LogisticRegression(C=np.inf, tol=1e-12, max_iter=20000).fit(scale.transform(fitted), labels)
    np.testing.assert_allclose(told, other.predict_proba(scale.transform(judged)), atol=1e-4)


def test_the_strength_is_chosen_inside_the_fitting_part() -> None:
    fitted, labels, judged, right = drawn(2, n=120, d=40, noise=8.0)
    noisy = choose(fitted, labels, 2, "standardised", 0)
    clear = choose(*drawn(2, n=600, d=9, noise=0.9)[:2], 2, "standardised", 0)
    assert noisy > clear
    one = probe(fitted, labels, judged, right)
    two = probe(fitted, labels, judged[::-1] * 3, right)  # what is judged does not move the choice
    assert one.note == two.note == f"strength {noisy:g}"


def test_folds_hold_every_class() -> None:
    labels = np.array([0] * 17 + [1] * 5 + [2] * 30)
    found = folds(labels, 0)
    assert np.array_equal(found, folds(labels, 0))
    assert not np.array_equal(found, folds(labels, 1))
    for kind in range(3):
        assert set(found[labels == kind]) == set(range(FOLDS))


@pytest.mark.parametrize("reader", READERS)
def test_accuracy_and_chance(reader: str) -> None:
    fitted, labels, judged, right = drawn(3, noise=0.8)
    found = probe(fitted, labels, judged, right, reader=reader)
    assert found.value > 0.75 > found.null
    assert found.null == pytest.approx(np.bincount(right).max() / len(right))
    assert (found.n, found.per, found.reader) == (len(right), "examples", reader)
    np.testing.assert_allclose(found.seen.sum(1), 1)


def test_rows_with_nan_are_left_out() -> None:
    fitted, labels, judged, right = drawn(2)
    rest = probe(fitted[1:], labels[1:], judged[1:], right[1:])
    fitted[0, 0], judged[0, 1] = np.nan, np.inf
    found = probe(fitted, labels, judged, right)
    assert (found.left_out, found.n, found.value) == (2, len(right) - 1, rest.value)


def test_a_class_that_is_only_judged_is_never_right() -> None:
    fitted, labels, judged, right = drawn(2, noise=0.5)
    right = right.copy()
    right[:10] = 2
    found = probe(fitted, labels, judged, right)
    assert found.value <= 1 - 10 / len(right)


def test_separable_classes_have_no_best_line() -> None:
    fitted, labels, judged, right = drawn(2, noise=0.01)
    found = probe(fitted, labels, judged, right, reader="unpenalised")
    assert "there is no best line" in found.note
    assert found.value == 1


def test_a_dimension_that_never_varies_says_nothing() -> None:
    fitted, labels, judged, right = drawn(2)
    one = probe(fitted, labels, judged, right)
    more = [np.concatenate([x, np.full((len(x), 1), 7.1)], axis=1) for x in (fitted, judged)]
    np.testing.assert_allclose(probe(more[0], labels, more[1], right).seen, one.seen, atol=1e-9)


def test_mistakes() -> None:
    fitted, labels, judged, right = drawn(2)
    with pytest.raises(IsoscopeError, match="two classes or more"):
        probe(fitted, labels * 0, judged, right)
    with pytest.raises(IsoscopeError, match="two classes or more"):
        probe(fitted, labels, judged, right * 0)
    with pytest.raises(IsoscopeError, match="no reader is called 'rigde'; did you mean 'ridge'"):
        probe(fitted, labels, judged, right, reader="rigde")
    with pytest.raises(IsoscopeError, match="vectors are the same"):
        probe(np.ones_like(fitted), labels, judged, right)
