"""A linear reader of classes: a logistic regression, one protocol for vectors before and after a repair.

Three readers, which differ in what is penalised:

- `standardised`: a ridge on vectors of variance 1 in each dimension, as scikit-learn's users have it;
- `ridge`: a ridge on vectors as they are, its strength relative to their mean variance;
- `unpenalised`: none. It is worked out on whitened vectors, which has the same optimum and finds it at once.

Means, variances and the strength are of the fitting part alone: the strength with the least log loss in
cross-validation inside it, the whole protocol again in every fold. The intercept is free. Judged examples
are seen once. Intervals are over them: how a fit would differ on other examples is not in them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.repair.impact.outcome import Array, Outcome, mean_of

READERS = ("standardised", "ridge", "unpenalised")
STRENGTHS = (1e4, 1e3, 1e2, 1e1, 1.0, 1e-1, 1e-2)  # against the summed loss; the strongest first
SEPARABLE = "unpenalised, separable"  # a reader that has no optimum, so that nothing can be shown of it
FOLDS = 5
_STEPS, _ROUGH = 2000, 100  # of the search; rough in cross-validation
_APART = 1e-3  # nats an example: with less, all are told apart
_FLAT = 1e-9  # of its largest number: a dimension that spreads less does not vary but for rounding
_NARROW = 1e-14  # of the largest variance: a direction that has less is rounding


@dataclass(frozen=True, eq=False)
class Line:
    """Weights [d + 1, classes], the last row the intercept, and how vectors are prepared for them."""

    prepare: Callable[[Array], Array]
    weights: Array

    def log_probabilities(self, vectors: Array) -> Array:
        """Of each class, [n, classes]."""
        logits = self.prepare(vectors) @ self.weights[:-1] + self.weights[-1]
        found: Array = logits - logsumexp(logits, axis=1, keepdims=True)
        return found


def probe(
    fitted: Array, labels: Array, judged: Array, right: Array, *, reader: str = "standardised", seed: int = 0
) -> Outcome:
    """Accuracy of a reader fitted on vectors [n, d] with labels [n], judged on others with `right` labels."""
    if reader not in READERS:
        raise unknown_name("reader", reader, READERS)
    kept, seen = np.isfinite(fitted).all(1), np.isfinite(judged).all(1)
    fitted, labels, judged, right = fitted[kept], labels[kept], judged[seen], right[seen]
    refuse_one_class(labels, right)
    classes = int(max(labels.max(), right.max())) + 1
    strength = 0.0 if reader == "unpenalised" else choose(fitted, labels, classes, reader, seed)
    line = fit_line(fitted, labels, classes, reader, strength)
    told = line.log_probabilities(judged)
    hits = (told.argmax(1) == right).astype(np.float64)
    note = f"strength {strength:g}"
    if reader == "unpenalised" and bool((line.log_probabilities(fitted).argmax(1) == labels).all()):
        note = "the fitting part is told apart without an error: without a penalty there is no best line"
        reader = SEPARABLE
    null, lost = float(np.bincount(right).max() / len(right)), int((~kept).sum() + (~seen).sum())
    score, given = mean_of(hits), np.exp(told)
    return Outcome("accuracy", "examples", len(right), score, given, reader, 1, null, lost, note)


def refuse_one_class(labels: Array, right: Array) -> None:
    """Say that there is nothing to tell apart."""
    many = min(len(np.unique(labels)), len(np.unique(right)))
    if many < 2:
        raise IsoscopeError(
            "a probe needs two classes or more, both to be fitted on and judged on; "
            f"got {len(labels)} examples of {len(np.unique(labels))} to be fitted on, "
            f"{len(right)} of {len(np.unique(right))} to be judged on."
        )


def choose(vectors: Array, labels: Array, classes: int, reader: str, seed: int) -> float:
    """The strength with the least log loss in cross-validation: from the strongest on, until it has risen."""
    fold = folds(labels, seed)
    parts = [fold == number for number in range(FOLDS)]
    parts = [mine for mine in parts if mine.any() and len(np.unique(labels[~mine])) > 1]
    begun: list[Array | None] = [None] * len(parts)
    losses: list[float] = []
    for strength in STRENGTHS:
        loss = 0.0
        for place, mine in enumerate(parts):
            others = (vectors[~mine], labels[~mine])
            line = fit_line(*others, classes, reader, strength, begun=begun[place], steps=_ROUGH)
            begun[place] = line.weights
            told = line.log_probabilities(vectors[mine])
            loss -= float(told[np.arange(len(told)), labels[mine]].sum())
        losses.append(loss)
        if losses[-1] > min(losses):
            break
    return STRENGTHS[int(np.argmin(losses))]


def folds(labels: Array, seed: int) -> Array:
    """The fold of each example: every class is dealt out in turn, in a random order."""
    fold = np.empty(len(labels), dtype=np.int64)
    source = np.random.default_rng([seed, len(labels)])
    for kind in np.unique(labels):
        mine = source.permutation(np.flatnonzero(labels == kind))
        fold[mine] = np.arange(len(mine)) % FOLDS
    return fold


def fit_line(
    vectors: Array, labels: Array, classes: int, reader: str, strength: float,
    *, begun: Array | None = None, steps: int = _STEPS
) -> Line:  # fmt: skip
    """The reader of this strength, searched for from weights that were `begun` with, or from 0."""
    prepare = _preparation(vectors, reader)
    x = prepare(vectors)
    start = np.zeros((x.shape[1] + 1, classes)) if begun is None else begun
    return Line(prepare, _searched(x, np.eye(classes)[labels], strength, start, steps))


def _searched(x: Array, wanted: Array, strength: float, start: Array, steps: int) -> Array:
    """Weights [d + 1, classes], the last row the intercept, with the least Σ log loss + strength/2·‖W‖²."""

    def cost(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(start.shape)
        logits = x @ weights[:-1] + weights[-1]
        logits -= logits.max(1, keepdims=True)
        shares = np.exp(logits)
        total = shares.sum(1, keepdims=True)
        loss = float(np.log(total).sum() - (logits * wanted).sum())
        loss += strength / 2 * float((weights[:-1] ** 2).sum())
        back = shares / total - wanted
        slope = np.concatenate([x.T @ back + strength * weights[:-1], back.sum(0)[None]])
        return loss / len(x), slope.ravel() / len(x)

    def told_apart(intermediate_result: Any) -> None:
        if strength == 0 and intermediate_result.fun < _APART:
            raise StopIteration  # weights would grow for ever

    search: Any = minimize  # its types know no cost that gives its slope as well
    exact = steps > _ROUGH
    ends = {"gtol": 1e-9, "ftol": 1e-15} if exact else {"gtol": 1e-6, "ftol": 1e-9}
    options = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": 20, **ends}
    how = {"jac": True, "method": "L-BFGS-B", "callback": told_apart}
    found: Array = search(cost, start.ravel(), options=options, **how).x
    return found.reshape(start.shape)


def _preparation(vectors: Array, reader: str) -> Callable[[Array], Array]:
    """How vectors are brought before a reader, by the fitting part."""
    mean = vectors.mean(0)
    centred = vectors - mean
    spread = np.sqrt((centred**2).mean(0))
    varies = spread > _FLAT * np.abs(vectors).max(0)
    if not varies.any():
        raise IsoscopeError(f"all {len(vectors)} vectors are the same; there is nothing to read in them.")
    if reader == "ridge":
        scale = float(np.sqrt((spread**2).mean()))
        return lambda x: (x - mean) / scale
    if reader == "standardised":
        each = np.where(varies, spread, np.inf)
        return lambda x: (x - mean) / each
    values, axes = np.linalg.eigh(centred.T @ centred / len(centred))
    wide = values > _NARROW * values[-1]
    turned = axes[:, wide] / np.sqrt(values[wide])
    return lambda x: (x - mean) @ turned
