"""Scores of vectors against SciPy and naive loops; draws that are paired; hubs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from isoscope.errors import IsoscopeError
from isoscope.repair.impact.outcome import CANNOT, DRAWS, HELPED, HURT, SAME, UNDEFINED, changed, drawn
from isoscope.repair.impact.scores import hub_outcomes, neighbours, retrieval, similarity

RANDOM = np.random.default_rng(0)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.array([x @ y / (np.linalg.norm(x) * np.linalg.norm(y)) for x, y in zip(a, b, strict=True)])


def test_correlations_are_those_of_scipy() -> None:
    a, b = RANDOM.standard_normal((2, 83, 7)) + 0.4
    scores = RANDOM.integers(0, 6, 83).astype(float)  # ties
    spearman, pearson = similarity(a, b, scores)
    assert spearman.value == pytest.approx(stats.spearmanr(cosines(a, b), scores).statistic, abs=1e-12)
    assert pearson.value == pytest.approx(stats.pearsonr(cosines(a, b), scores).statistic, abs=1e-12)
    assert (spearman.n, spearman.per, spearman.left_out) == (83, "pairs", 0)


def test_draws_are_those_of_scipy_on_the_same_places() -> None:
    a, b = RANDOM.standard_normal((2, 31, 5))
    scores = RANDOM.integers(0, 4, 31).astype(float)
    found = similarity(a, b, scores)[0]
    places = np.random.default_rng([3, 31]).integers(0, 31, (DRAWS, 31))
    draws = drawn(found, 3)
    assert draws.shape == (DRAWS,)
    for row in (0, 17, DRAWS - 1):
        at = places[row]
        assert draws[row] == pytest.approx(stats.spearmanr(cosines(a, b)[at], scores[at]).statistic)
    sure = found.reading(3)
    low, high = sure.low, sure.high
    assert low < found.value < high


def test_vectors_with_nan_take_their_pair_out() -> None:
    a, b = RANDOM.standard_normal((2, 20, 4))
    scores = RANDOM.standard_normal(20)
    rest = similarity(a[2:], b[2:], scores[2:])[0]
    a[0, 1], b[1, 2] = np.nan, np.inf
    found = similarity(a, b, scores)[0]
    assert (found.n, found.left_out, found.value) == (18, 2, rest.value)


def test_scores_that_are_all_the_same() -> None:
    with pytest.raises(IsoscopeError, match="different scores; got 9 pairs of 1 score"):
        similarity(*RANDOM.standard_normal((2, 9, 4)), np.ones(9))


def test_retrieval_against_a_loop() -> None:
    queries, documents = RANDOM.standard_normal((23, 6)), RANDOM.standard_normal((40, 6))
    right = [sorted(RANDOM.choice(40, int(RANDOM.integers(1, 4)), replace=False).tolist()) for _ in queries]
    ranks = []
    for query, own in zip(queries, right, strict=True):
        order = sorted(range(40), key=lambda i: -float(cosines(query[None], documents[i][None])[0]))
        ranks.append(1 + min(order.index(i) for i in own))
    found = {each.measure: each.value for each in retrieval(queries, documents, right)}
    assert found["recall_1"] == pytest.approx(np.mean(np.array(ranks) == 1))
    # what stands before the first right one is never right, so both ranks are the same
    assert found["recall_10"] == pytest.approx(np.mean(np.array(ranks) <= 10))
    assert found["reciprocal_rank"] == pytest.approx(np.mean(1 / np.array(ranks)))


def test_chance_of_retrieval_is_what_random_vectors_give() -> None:
    right = [[i % 30, (i + 1) % 30] for i in range(4000)]
    for each in retrieval(RANDOM.standard_normal((4000, 8)), RANDOM.standard_normal((30, 8)), right):
        assert each.value == pytest.approx(each.null, abs=0.035)


def test_a_document_without_a_vector_is_never_found() -> None:
    documents = np.eye(3)
    documents[0] = np.nan
    found = {each.measure: each for each in retrieval(np.eye(3), documents, [[0], [1], [2]])}
    assert found["recall_1"].value == pytest.approx(2 / 3)
    assert found["recall_10"].n == 3


@pytest.mark.parametrize(("n", "k"), [(40, 3), (57, 10)])
def test_hubs_against_a_loop(n: int, k: int) -> None:
    points = RANDOM.standard_normal((n, 5)) + 0.5
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    counts = np.zeros(n, dtype=int)
    for i in range(n):
        others = sorted((j for j in range(n) if j != i), key=lambda j: -float(unit[i] @ unit[j]))
        counts[others[:k]] += 1
    assert neighbours(points, k)[0].tolist() == counts.tolist()
    skewed, anti = hub_outcomes(points, k)
    assert skewed.value == pytest.approx(stats.skew(counts))
    assert anti.value == pytest.approx(np.mean(counts == 0))
    assert skewed.sign == anti.sign == -1
    assert skewed.null == pytest.approx(1 / math.sqrt(k))


def test_a_cloud_off_the_origin_has_hubs() -> None:
    cloud = RANDOM.standard_normal((600, 50))
    centred, off = (hub_outcomes(cloud + shift, 10)[0].value for shift in (0.0, 1.0))
    assert off > centred + 1


def test_too_few_vectors_have_no_neighbours() -> None:
    with pytest.raises(IsoscopeError, match="10 nearest neighbours need at least 11 vectors; got 5"):
        neighbours(RANDOM.standard_normal((5, 3)), 10)


def planted(noise: float, n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs whose cosine follows the score, but for noise."""
    random = np.random.default_rng(5)
    scores = random.uniform(0, 1, n)
    angle = np.arccos(scores) + noise * np.random.default_rng(6).standard_normal(n)
    a = np.tile([1.0, 0.0], (n, 1))
    return a, np.stack([np.cos(angle), np.sin(angle)], axis=1), scores


def test_verdicts() -> None:
    good, bad = (similarity(*planted(noise))[0] for noise in (0.1, 0.4))
    better = changed(bad, good, "", 0)
    assert better.verdict == HELPED
    assert better.by.value == pytest.approx(good.value - bad.value)
    assert 0 < better.by.low < better.by.value < better.by.high
    assert changed(good, bad, "", 0).verdict == HURT
    same = changed(good, good, "", 0)
    assert (same.verdict, same.by.low, same.by.high) == (SAME, 0, 0)
    assert "all are alike" in same.said()


def test_less_is_better_where_the_sign_says_so() -> None:
    cloud = np.random.default_rng(1).standard_normal((500, 60))
    off = cloud + 0.9 * np.random.default_rng(2).standard_normal((500, 1)) * np.ones(60)
    before, after = hub_outcomes(off)[1], hub_outcomes(cloud)[1]
    found = changed(before, after, "", 0)
    assert found.verdict == (HELPED if found.by.below(0) else HURT if found.by.above(0) else SAME)
    assert changed(after, before, "", 0).by.value == -found.by.value


def test_no_difference_says_what_would_have_shown() -> None:
    one, two = (similarity(*planted(noise, 60))[0] for noise in (0.2, 0.203))
    found = changed(one, two, "", 0)
    assert found.verdict == SAME
    assert found.said().startswith("no difference at n = 60 pairs (one of 0.")
    assert found.least == pytest.approx((found.by.high - found.by.low) / 2)


def test_a_reason_alone_is_no_verdict() -> None:
    good, bad = (similarity(*planted(noise))[0] for noise in (0.1, 0.4))
    told = changed(bad, good, "a rotation", 0)
    assert told.verdict == HELPED
    assert "should not matter, yet what the reader gives differs" in told.why
    assert changed(good, good, "a rotation", 0).verdict == CANNOT


def test_intervals_cover() -> None:
    """Of differences that are 0 on the whole, about one interval in twenty excludes 0."""
    wrong, trials = 0, 40
    for seed in range(trials):
        random = np.random.default_rng([9, seed])
        scores = random.standard_normal(60)
        angles = [np.arctan(scores + random.standard_normal(60)) for _ in range(2)]
        sides = [np.stack([np.cos(angle), np.sin(angle)], axis=1) for angle in angles]
        a = np.tile([0.0, 1.0], (60, 1))
        found = changed(similarity(a, sides[0], scores)[0], similarity(a, sides[1], scores)[0], "", seed)
        wrong += found.verdict != SAME
    assert wrong <= 6  # of a binomial with p = .05, more comes once in a hundred


def test_a_zero_vector_has_no_cosine() -> None:
    a, b, scores = planted(0.1, 30)
    before = similarity(a, b, scores)[0]
    b[3] = 0
    assert changed(before, similarity(a, b, scores)[0], "", 0).verdict == UNDEFINED


def test_draws_without_a_score_are_left_out_or_there_is_no_interval() -> None:
    a, b = RANDOM.standard_normal((2, 40, 5))
    scores = np.zeros(40)
    scores[:5] = 1  # about one draw in 150 has no pair of score 1
    before, after = (similarity(each, b, scores)[0] for each in (a, a + 0.1))
    assert 0 < np.isnan(drawn(before, 0)).mean() < 0.05
    found = changed(before, after, "", 0)
    assert math.isfinite(found.by.low)
    assert math.isfinite(found.by.high)
    few = changed(*(similarity(each[:3], b[:3], np.arange(3.0))[0] for each in (a, a + 0.1)), "", 0)
    assert few.said() == "undefined: 3 pairs are too few for an interval"
