"""Whether checkpoints lie in the order of their names, told from how far their weights are from each other.

With D(a, b) = ‖w_a − w_b‖² on the places of a sketch, taking i..j out of its place between a = i−1 and b =
j+1 saves D(a, i) + D(j, b) − D(a, b) of the path, and putting it between k and k+1 costs D(k, i) + D(j, k+1)
− D(k, k+1).

A training that drifts has saved < 0, a random walk 0; weights that merely jitter about a place, each by its
own amount A, have saved = costs = A_i² + A_j² wherever they are put. So a healthy trajectory has saved ≤
costs, and `RATIO` is what noise of a sketch leaves of that. A late checkpoint under an early name has saved ≫
costs ≈ 0; two neighbours that were swapped have, by equal steps of a walk, 2 against 0.

What cannot be told: a trajectory that is reversed as a whole; the first two or the last two swapped; a swap
among weights that do not move any more. The first and the last are doubted where their one neighbour is far
off and another is near; weights that alternate from step to step tell nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ENOUGH = 4  # checkpoints: of three, only the middle one has two neighbours
RATIO = 2.0  # saved over costs
AWAY = 1.7  # (D(a, i) + D(j, b)) / D(a, b): jitter alone has 2, a walk 1, a drift less
SWAPPED = 2.5  # the same, of one whose place is at most `STONE_THROW` further: a walk has 3 there
STONE_THROW = 2
CALM = 1.3  # the same of one of two neighbours at least
ALONE = 8.0  # the same, of one that is near no other: it went away and came back
NEARER = 3.0  # of the first and the last: how much nearer another one is than the neighbour
JUMPS = 1.5  # and how much further off the neighbour is than the neighbour's own
NEARLY = 0.9  # of the gain of the best move
SURE = 4.0  # standard errors over the pieces of the sketch
PIECES = 32
LONGEST = 100  # block
LEAST = 4 * PIECES  # places that move at all
ALTERNATES = 0.8  # share of places at which both neighbours are nearer to each other than to it


@dataclass(frozen=True)
class Stray:
    """Checkpoints first..last that lie elsewhere: nearest to `near`; None where near to none."""

    first: int
    last: int
    near: int | None


def strays(sketches: Array) -> list[Stray]:
    """Those of [n, m] sketches, in the order of their names, that are not in the order of their weights."""
    every = np.asarray(sketches, dtype=np.float64)
    left, found = list(range(len(every))), list[Stray]()
    while len(left) >= 3:
        scaled = _scaled(every[left])  # without those that were found: their jumps are no measure
        distances = _distances(scaled)
        alike = scaled.shape[1] < LEAST or (not found and _alternates(distances))
        stray = None if alike else _worst(scaled, distances)
        if stray is None:
            break
        near = None if stray.near is None else left[stray.near]
        found.append(Stray(left[stray.first], left[stray.last], near))
        del left[stray.first : stray.last + 1]
    return sorted(found, key=lambda each: each.first)


def _scaled(sketches: Array) -> Array:
    """Every place by how much it moves from one checkpoint to the next, so that all of them count alike."""
    moves = np.diff(sketches, axis=0)
    size = np.sqrt((moves**2).mean(0)) if len(moves) else np.zeros(sketches.shape[1])
    moving = np.isfinite(size) & (size > 0)
    middle = sketches[:, moving]
    return (middle - middle.mean(0)) / size[moving]


def _distances(scaled: Array) -> Array:
    squares = (scaled**2).sum(1)
    found = squares[:, None] + squares - 2 * scaled @ scaled.T
    return np.maximum((found + found.T) / 2, 0) * (1 - np.eye(len(found)))


def _alternates(distances: Array) -> bool:
    """Whether the weights go to and fro from checkpoint to checkpoint, as under too large a rate."""
    beside, across = np.diagonal(distances, 1), np.diagonal(distances, 2)
    nearer = across < np.minimum(beside[:-1], beside[1:])
    return len(across) >= 4 and bool(nearer.mean() >= ALTERNATES)


def _worst(scaled: Array, distances: Array) -> Stray | None:
    """What is most out of its place, or None: of sure moves nearly as good as the best, the one of fewest."""
    moves = _at_an_end(scaled, distances)
    for away, first, last in _doubted(distances):
        gap, costs = _best_gap(distances, first, last)
        saved = _saved(distances, first, last)
        hops = gap - last if gap > last else first - 1 - gap
        moved = saved > RATIO * costs and away > (AWAY if hops > STONE_THROW else SWAPPED)
        alone = away > ALONE and first == last
        if not (moved or alone):
            continue
        pieces = _path(scaled, first - 1, first, last, last + 1)
        if moved and _sure(pieces - RATIO * _path(scaled, gap, first, last, gap + 1)):
            moves.append((saved - costs, _fewer(distances, first, last, gap)))
        elif alone and _sure(pieces):
            moves.append((0.0, Stray(first, last, None)))
    if not moves:
        return None
    most = max(gain for gain, _ in moves)
    good = (each for each in moves if each[0] >= NEARLY * most)
    return min(good, key=lambda each: (each[1].last - each[1].first, -each[0]))[1]


def _fewer(distances: Array, first: int, last: int, gap: int) -> Stray:
    """Which of two blocks is at fault: the fewer; of as many, those without which the path is shorter."""
    blocks = [(first, last), (last + 1, gap) if gap > last else (gap + 1, first - 1)]
    first, last = min(blocks, key=lambda block: (block[1] - block[0], -_saved(distances, *block)))
    to_block = distances[first : last + 1].min(0)
    to_block[first : last + 1] = np.inf
    return Stray(first, last, int(to_block.argmin()))


def _saved(distances: Array, first: int, last: int) -> float:
    before, after = first > 0, last + 1 < len(distances)
    found = distances[first - 1, first] * before
    if after:
        found += distances[last, last + 1] - distances[first - 1, last + 1] * before
    return float(found)


def _doubted(distances: Array) -> list[tuple[float, int, int]]:
    """Blocks that are far from what is before and after them: the shortest first, then those most so.

    Not those between two that are far from theirs, too: there the weights go to and fro.
    """
    n = len(distances)
    beside = np.diagonal(distances, 1)
    alone = np.ones(n)  # the ends have no two neighbours to be far from
    found = []
    for length in range(1, min(n - 1, LONGEST + 1)):
        first = np.arange(1, n - length)
        across = distances[first - 1, first + length]
        away = (beside[first - 1] + beside[first + length - 1]) / np.maximum(across, 1e-300)
        if length == 1:
            alone[1:-1] = away
        calm = np.minimum(alone[first - 1], alone[first + length]) < CALM
        chosen = np.flatnonzero((away > AWAY) & calm)
        found += [(float(away[k]), int(first[k]), int(first[k]) + length - 1) for k in chosen]
    return sorted(found, key=lambda each: (each[2] - each[1], -each[0]))


def _best_gap(distances: Array, first: int, last: int) -> tuple[int, float]:
    """The k for which first..last fits best between k and k+1, and what it costs there.

    −1 and n−1 are before and after all others; the one neighbour counts for two there.
    """
    n = len(distances)
    costs = np.empty(n + 1)
    costs[1:n] = distances[:-1, first] + distances[1:, last] - np.diagonal(distances, 1)
    costs[0], costs[n] = (distances[end, first] + distances[end, last] for end in (0, n - 1))
    costs[first : last + 2] = np.inf  # its own place, and inside it
    best = int(costs.argmin())
    return best - 1, float(costs[best])


def _path(scaled: Array, before: int, first: int, last: int, after: int) -> Array:
    """What a block between two others adds to the path, by piece of the sketch; at an end both are one."""
    before, after = (after, after) if before < 0 else (before, min(after, len(scaled) - 1))
    pairs = ((before, first), (last, after), (before, after))
    to, from_, across = ((scaled[one] - scaled[other]) ** 2 for one, other in pairs)
    return _pieces(to + from_ - across)


def _sure(pieces: Array) -> bool:
    """Whether a sum over pieces is above 0 by more than its error."""
    return bool(pieces.sum() > SURE * pieces.std(ddof=1) * len(pieces) ** 0.5)


def _at_an_end(scaled: Array, distances: Array) -> list[tuple[float, Stray]]:
    """The first or the last, where another one is much nearer to it than its neighbour, which is far off."""
    n = len(distances)
    found = []
    for end, beside, beyond in ((0, 1, 2), (n - 1, n - 2, n - 3)) if n > 3 else ():
        others = distances[end].copy()
        others[[end, beside]] = np.inf
        near = int(others.argmin())
        jump, short, usual = (
            _pieces((scaled[one] - scaled[other]) ** 2)
            for one, other in ((end, beside), (end, near), (beside, beyond))
        )
        if _sure(jump - NEARER * short) and _sure(jump - JUMPS * usual):
            gain = distances[end, beside] - _best_gap(distances, end, end)[1]
            found.append((max(0.0, float(gain)), Stray(end, end, near)))
    return found


def _pieces(total: Array) -> Array:
    return np.array([piece.sum() for piece in np.array_split(total, PIECES)])
