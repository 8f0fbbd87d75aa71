"""Where a trajectory breaks: a jump or a turn, held against a null that may wander and bend by itself.

A trajectory is values y at places x. The null is y = a + bx + e + w + s + r: e white, w a Wiener process, s
an integrated one (a smoothing spline), r relaxations from either end, in any mix of a grid; so neither a
random walk nor a smooth curve nor one that settles is a change. The shocks of e and w may fall or grow along
x as exp(−fx), since noise shrinks with the learning rate: against even shocks the large ones of the beginning
would be changes in a quarter of such series. A change adds one column to it: a jump
1[x ≥ τ], a turn (x − τ)₊, or, so that a single wrong checkpoint is taken for neither, a stray 1[x = τ].
With the variance profiled out,

    ℓ = c − (n − p)/2 · log RSS,  c = −½(log|V| + log|XᵀV⁻¹X|),  V the mix, RSS of the whitened residual,

the largest over all mixes; what is tested is the largest ℓ of any change less that of the null. What chance
makes of it is simulated from the null at the mix that fits (the worst of those that fit nearly as well):
neither scale nor trend enters, so all series over the same places share it. What passes is held against
series made of its own shocks, since a training is restless at times and quiet at others. The place has a 95 %
set: the candidates of highest weight Σ exp(c) RSS^{−(n−p−1)/2} ‖u‖⁻¹, u the whitened column, that is the
likelihood integrated over size and variance (its sets cover on average over places, which sets cut from a
profile of a discrete place need not).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Array = NDArray[np.float64]

JUMP, TURN, STRAY = "jump", "turn", "stray"
EDGE = 3  # points before and after a jump or a turn
SIMULATED = 499  # series of a mix: the smallest p is 1/500
RESHUFFLED = 299  # series made of one series' own shocks
LEVEL = 0.95  # of the set of places
_WANDERS = (0.0, 0.3, 10.0, 1e3)  # variance of w over that of e
_BENDS = (0.0, 0.3, 10.0, 1e3, 1e5, 1e7)  # of s over that of e
_BENDS_UNEVEN = (0.0, 10.0, 1e3)  # the same where shocks fall or grow
_RELAXES = (0.0, 1e2, 1e5, 1e8)  # of r over that of e
_FALLS = (0.0, 2.5, 5.0, 9.0, -4.0, -9.0)  # f; a walk in steps grows so steeply on a logarithmic axis
_RATES = (4.0, 8.0, 16.0, 32.0, 64.0)  # of the relaxations in r, over the whole axis
_FITTING = 16  # mixes that a series is held against again
_NEAR = 2.0  # mixes whose ℓ is so much lower fit nearly as well
_PARTS = (slice(0, 40), slice(40, 160), slice(160, SIMULATED))  # what most series fail at comes first
_TINY = float(np.finfo(float).tiny)
_ROUNDING = 1e-12  # of a series' own sum of squares: what no residual is below


@dataclass(frozen=True)
class Mix:
    """One mix, with all that does not depend on the values; u has a column for each candidate."""

    root: Array  # [n, n] the factor of V, to simulate
    whiten: Array  # [n, n] its inverse
    base: Array  # [n, p] orthonormal, whitened trend and the changes that were taken
    columns: Array  # [n, c] whitened columns, orthogonal to the base, of length 1
    sizes: Array  # [c] their lengths before
    constant: float  # c


@dataclass(frozen=True)
class Model:
    """The null over n places and every candidate for a change; of these, so many are `taken` into the base.

    `numbers` are those of the mixes in the model that this is a part of.
    """

    places: tuple[float, ...]
    kinds: tuple[str, ...]
    at: NDArray[np.int64]  # [c] the point at which a candidate begins
    mixes: tuple[Mix, ...]
    numbers: tuple[int, ...] = ()
    taken: int = 0

    @property
    def freedom(self) -> int:
        """The number n − p."""
        return len(self.places) - 2 - self.taken

    def score(self, values: Array) -> tuple[Array, NDArray[np.int64], Array]:
        """Of series [n, s]: gain [s] and candidate [s] of the best change, ℓ of the null by mix [g, s]."""
        null, changed = self._ells(values)
        chosen = changed.argmax(0)
        found = np.zeros(len(chosen), np.int64)
        for mix in np.unique(chosen):
            own = np.flatnonzero(chosen == mix)
            rest, _ = _residual(self.mixes[mix], values[:, own])
            found[own] = ((self.mixes[mix].columns.T @ rest) ** 2).argmax(0)
        return changed.max(0) - null.max(0), found, null

    def gains(self, values: Array) -> Array:
        """The gain of the best change of series [n, s], [s], without saying which it is."""
        null, changed = self._ells(values)
        gains: Array = changed.max(0) - null.max(0)
        return gains

    def _ells(self, values: Array) -> tuple[Array, Array]:
        """ℓ of the null and of the best change, by mix [g, s]."""
        centred, least = values - values.mean(0), []
        for mix in self.mixes:
            white = mix.whiten @ centred
            rest = white - mix.base @ (mix.base.T @ white)
            alone = _squares(rest) + _ROUNDING * _squares(white) + _TINY
            along = mix.columns.T @ rest
            explained = np.maximum(along.max(0), -along.min(0)) ** 2
            floor = _ROUNDING * alone + _TINY
            least.append((np.maximum(alone, floor), np.maximum(alone - explained, floor)))
        constant = np.array([mix.constant for mix in self.mixes])[:, None, None]
        ells = constant - self.freedom / 2 * np.log(np.array(least))
        return ells[:, 0], ells[:, 1]

    def chance(self, gain: float, nulls: Array, near: Model | None = None, most: float = 1.0) -> float:
        """The p-value of a gain, given ℓ of the null by mix [g], those of this model or of one `near`.

        Where it is above `most`, what is given is above `most` too, and no more: it is not worked out.
        """
        numbers = range(len(self.mixes)) if near is None else near.numbers
        fits = [number for number, ell in zip(numbers, nulls, strict=True) if ell >= nulls.max() - _NEAR]
        worst = 0.0
        for mix in sorted(fits, key=lambda one: (one, 0) not in self._gains):  # those that are there first
            above = 0
            for part in range(len(_PARTS)):
                above += int((self._simulated(mix, part) >= gain).sum())
                worst = max(worst, (1 + above) / (1 + SIMULATED))
                if worst > most:
                    return worst
        return worst

    def shuffled(self, values: Array, taken: Sequence[int]) -> Array:
        """What a series [n] would gain by chance if its shocks came in another order near by, [RESHUFFLED].

        Its shocks are what is left of it, whitened, without the changes that were taken. They may be of many
        sizes: a stretch in which a series is restless is no change of it.
        """
        rest = self
        for candidate in taken:
            rest = rest.taking(candidate)
        best, shocks, root = -np.inf, values, values
        for mix in rest.mixes:
            left, alone = _residual(mix, values[:, None])
            ell = mix.constant - rest.freedom / 2 * float(np.log(alone[0]))
            if ell > best:
                best, shocks, root = ell, left[:, 0] - left.mean(), mix.root
        n, random = len(shocks), np.random.default_rng(0)
        reach = max(4, n // 8)  # a shock comes from near by and with either sign: quiet stretches stay so
        at = np.arange(n)[:, None] + random.integers(-reach, reach + 1, (n, RESHUFFLED))
        at = np.abs((n - 1) - np.abs((n - 1) - at))  # mirrored at the ends
        drawn = shocks[at] * random.choice([-1.0, 1.0], at.shape)
        return self.gains(root @ drawn)

    def near(self, *nulls: Array) -> Model:
        """The same with the few mixes that fit best, given ℓ by mix [g], of the null or of others too."""
        best = {int(number) for each in nulls for number in np.argsort(-each)[:_FITTING]}
        numbers = tuple(sorted(best))
        return replace(self, mixes=tuple(self.mixes[one] for one in numbers), numbers=numbers)

    def changed(self, values: Array, candidate: int) -> Array:
        """ℓ by mix [g] of one series [n] with this change in it."""
        found = []
        for mix in self.mixes:
            rest, alone = _residual(mix, values[:, None])
            left = float(alone[0]) - float(mix.columns[:, candidate] @ rest[:, 0]) ** 2
            found.append(mix.constant - self.freedom / 2 * np.log(max(left, _ROUNDING * float(alone[0]))))
        return np.array(found)

    def _simulated(self, mix: int, part: int) -> Array:
        if (mix, part) not in self._gains:
            noise = np.random.default_rng(mix).standard_normal((len(self.places), SIMULATED))
            self._gains[mix, part] = self.gains(self.mixes[mix].root @ noise[:, _PARTS[part]])
        return self._gains[mix, part]

    @cached_property
    def _gains(self) -> dict[tuple[int, int], Array]:
        return {}

    def taking(self, candidate: int) -> Model:
        """The same with a change in the base."""
        return replace(self, mixes=tuple(_taking(m, candidate) for m in self.mixes), taken=self.taken + 1)

    def size(self, values: Array, candidate: int) -> float:
        """How large a change is, in units of the values (a turn: of the values over the whole axis)."""
        found = []
        for mix in self.mixes:
            rest, alone = _residual(mix, values[:, None])
            along = float(mix.columns[:, candidate] @ rest[:, 0])
            left = max(float(alone[0]) - along**2, _ROUNDING * float(alone[0]))
            found.append((mix.constant - self.freedom / 2 * np.log(left), along / mix.sizes[candidate]))
        return max(found)[1]

    def likely(self, values: Array, kind: str) -> list[int]:
        """The points of the 95 % set of places of a change of this kind in one series [n]."""
        own = np.flatnonzero(np.array(self.kinds) == kind)
        weights = []
        for mix in self.mixes:
            rest, alone = _residual(mix, values[:, None])
            left = np.maximum(alone - (mix.columns[:, own].T @ rest)[:, 0] ** 2, _ROUNDING * alone)
            weights.append(mix.constant - (self.freedom - 1) / 2 * np.log(left) - np.log(mix.sizes[own]))
        each = np.logaddexp.reduce(np.array(weights))
        share = np.exp(each - np.logaddexp.reduce(each))
        order = np.argsort(-share, kind="stable")
        needed = int((np.cumsum(share[order]) < LEVEL).sum()) + 1
        return sorted(int(self.at[own[i]]) for i in order[:needed])


def _residual(mix: Mix, values: Array) -> tuple[Array, Array]:
    """Whitened series without the base [n, s], and their sums of squares [s]."""
    white = mix.whiten @ (values - values.mean(0))
    rest = white - mix.base @ (mix.base.T @ white)
    return rest, _squares(rest) + _ROUNDING * _squares(white) + _TINY


def _squares(series: Array) -> Array:
    """The sums of squares [s] of series [n, s]."""
    found: Array = np.einsum("ns,ns->s", series, series)
    return found


def _taking(mix: Mix, candidate: int) -> Mix:
    more = mix.columns[:, candidate : candidate + 1]
    columns = mix.columns - more @ (more.T @ mix.columns)
    lengths = np.linalg.norm(columns, axis=0)
    gone = lengths < 1e-6  # what the base now has
    columns = np.where(gone, 0.0, columns / np.where(gone, 1.0, lengths))
    return replace(
        mix,
        base=np.concatenate([mix.base, more], 1),
        columns=columns,
        sizes=np.where(gone, np.inf, np.where(gone, 1.0, mix.sizes) * lengths),
    )


@lru_cache(maxsize=8)
def model(places: tuple[float, ...]) -> Model:
    """The model over these places, ascending; the same places are prepared once."""
    x = np.array(places)
    x = (x - x[0]) / (x[-1] - x[0])
    n = len(x)
    inner = range(EDGE, n - EDGE + 1)
    drawn = [(JUMP, i, (np.arange(n) >= i) * 1.0) for i in inner]
    drawn += [(TURN, i, np.maximum(x - x[i], 0)) for i in range(EDGE - 1, n - EDGE + 1)]
    drawn += [(STRAY, i, (np.arange(n) == i) * 1.0) for i in range(n)]
    columns = np.array([column for _, _, column in drawn]).T
    trend = np.stack([np.ones(n), x], 1)
    mixes = []
    for fall in _FALLS:
        bends = _BENDS_UNEVEN if fall else _BENDS
        white, walk, bent, relaxed = (_sized(kernel, x) for kernel in _kernels(x, fall))
        mixes += [
            _mix(white + w * walk + s * bent + r * relaxed, trend, columns)
            for w in _WANDERS
            for s in bends
            for r in _RELAXES
        ]
    return Model(
        places, tuple(kind for kind, _, _ in drawn), np.array([i for _, i, _ in drawn]), tuple(mixes)
    )


def _kernels(x: Array, fall: float) -> tuple[Array, Array, Array, Array]:
    """Covariances of e, w, s and r, where the shocks of e and w have sizes exp(−fall · x).

    A walk goes by checkpoints as much as by places: which of the two it is nobody knows.
    """
    by = (x + np.linspace(0, 1, len(x))) / 2
    power = np.exp(-2 * fall * x)
    by = np.concatenate([[0.0], np.cumsum(np.diff(by) * (power[1:] + power[:-1]) / 2)])
    less = np.minimum(x[:, None], x)
    smooth = less**2 * (np.maximum(x[:, None], x) / 2 - less / 6)
    decays = np.exp(-np.multiply.outer(x, _RATES))
    both = np.concatenate([decays, np.exp(-np.multiply.outer(1 - x, _RATES))], 1)
    return np.diag(power), np.minimum(by[:, None], by), smooth, both @ both.T


def _sized(kernel: Array, x: Array) -> Array:
    trend = np.linalg.qr(np.stack([np.ones(len(x)), x], 1))[0]
    kept = np.eye(len(x)) - trend @ trend.T
    return kernel * (len(x) / float(np.trace(kept @ kernel @ kept)))


def _mix(covariance: Array, trend: Array, columns: Array) -> Mix:
    root = np.asarray(np.linalg.cholesky(covariance), np.float64)
    whiten = linalg.solve_triangular(root, np.eye(len(root)), lower=True)
    base, upper = np.linalg.qr(whiten @ trend)
    white = whiten @ columns
    white = white - base @ (base.T @ white)
    sizes = np.linalg.norm(white, axis=0)
    constant = -float(np.log(np.diag(root)).sum() + np.log(np.abs(np.diag(upper))).sum())
    return Mix(root, whiten, base, white / sizes, sizes, constant)
