"""Queries and keys of every head, one attention in memory at a time; what cannot be read is a remark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import torch
from torch import Tensor

from isoscope.errors import IsoscopeError, first_line
from isoscope.geometry.propagation import propagation, signal_propagation
from isoscope.geometry.spectra import factors
from isoscope.measures.null_heads import random_moments
from isoscope.models.weights import Norm, Projections, Weights
from isoscope.results.points import Points
from isoscope.sites import Site
from isoscope.stats.weights import HeadWeights

KINDS = {"attention": "query_key", "cross_attention": "cross_query_key"}
EIGENVALUES, POSITIONS, MOST = 64, 32, 60_000  # points a head, points a curve, points of a picture in all
WALKS = 4096  # of a simulated ρ(t): a standard error of at most .008


@dataclass(frozen=True, eq=False)
class HeadsWeighed:
    """The heads at one site: their record, ρ(t) of W and of a random W [h, positions], and remarks."""

    site: Site
    record: HeadWeights
    positions: Tensor  # [positions], t/T
    predicted: Tensor | None
    random: Tensor | None
    remarks: tuple[str, ...]


def weigh_heads(
    weights: Weights, length: int, seed: int, refuse: Callable[[Site, str], None]
) -> Iterator[HeadsWeighed | None]:
    """Every site in turn, None where nothing of it could be read; `refuse` is told why."""
    for site, steps in groupby(weights.steps, lambda step: step.site):
        at = Site(KINDS[site.kind], site.layer)
        found: HeadsWeighed | None = None
        for step in steps:
            try:
                projections = next(replace(weights, steps=(step,)).projections())
                new = _weighed(at, projections, length, seed)
            except (IsoscopeError, ValueError, RuntimeError, OSError) as reason:
                refuse(at, first_line(reason))
                continue
            found = new if found is None else _beside(found, new)
        yield found


def _weighed(at: Site, projections: Projections, length: int, seed: int) -> HeadsWeighed:
    if projections.query.shape[1] != projections.key.shape[1]:
        raise IsoscopeError(
            "queries and keys come from vectors of different widths, so W is not square and has no spectrum"
        )
    sides = ((projections.query, projections.norm), (projections.key, projections.key_norm))
    parts = factors(*(_scaled(*side) for side in sides), scale=projections.scale)
    offset = projections.scale * _offset(projections)
    alone = at.kind == "cross_query_key"
    record = HeadWeights.of(parts, query_offset=offset, length=None if alone else length)
    positions = torch.linspace(1, length, min(POSITIONS, length)).round().long()
    predicted = random = None
    if not alone:
        predicted = propagation(
            record.spectrum, parts, length, walks=WALKS, seed=seed % 2**63, positions=positions
        ).value
        random = signal_propagation(*random_moments(record), length)[:, positions - 1]
    return HeadsWeighed(at, record, positions / length, predicted, random, projections.remarks)


def _scaled(weight: Tensor, norm: Norm | None) -> Tensor:
    """A projection [h, d, e] with the γ of the norm before it folded in."""
    return weight.double() if norm is None else weight * norm.weight.double()[:, None]


def _offset(projections: Projections) -> Tensor:
    """q₀ = W_Qᵀβ + b_Q of every head, [h, e]."""
    query, norm = projections.query, projections.norm
    found = torch.zeros(len(query), query.shape[2], dtype=torch.float64)
    if norm is not None and norm.bias is not None:
        found += torch.einsum("hde,d->he", query.double(), norm.bias.double())
    return found if projections.query_bias is None else found + projections.query_bias.double()


def _beside(one: HeadsWeighed, other: HeadsWeighed) -> HeadsWeighed:
    def both(mine: Tensor | None, its: Tensor | None) -> Tensor | None:
        return None if mine is None or its is None else torch.cat([mine, its])

    predicted, random = both(one.predicted, other.predicted), both(one.random, other.random)
    remarks = tuple(dict.fromkeys((*one.remarks, *other.remarks)))
    record = one.record.beside(other.record)
    return replace(one, record=record, predicted=predicted, random=random, remarks=remarks)


def head_points(found: Sequence[HeadsWeighed]) -> Iterator[Points]:
    """Eigenvalues in the plane, heads by trace and size, ρ(t): fewer points each where heads are many."""
    heads = max(1, sum(len(each.record.width) for each in found))
    values, curve = min(EIGENVALUES, MOST // heads), max(2, min(POSITIONS, MOST // (2 * heads)))
    for each in found:
        kind, layer, spectrum = each.site.kind, each.site.layer, each.record.spectrum
        for head in range(len(each.record.width)):
            own = spectrum.eigenvalues[head]
            own = own[own.isfinite()][:values]
            at = (kind, layer, head)
            yield Points("spectrum", *at, "eigenvalue", own.real.tolist(), own.imag.tolist())
            if each.record.regimes and spectrum.trace[head].isfinite():
                place = [float(spectrum.trace[head])], [float(spectrum.frobenius_square[head].sqrt())]
                yield Points("plane", *at, each.record.regimes[head], *place)
            for series, profile in (("predicted", each.predicted), ("random", each.random)):
                if profile is not None and profile[head].isfinite().all():
                    kept = torch.linspace(0, len(each.positions) - 1, min(curve, len(each.positions))).long()
                    x, y = each.positions[kept].tolist(), profile[head, kept].tolist()
                    yield Points("propagation", *at, series, x, y)
