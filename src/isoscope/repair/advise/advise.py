"""What advice is made of: a space as it is and after each repair, as rows.

Every number is of vectors that no repair was fitted on. In rows the model is ``before`` or the name of a
repair; the site of a dimension is ``dimension`` with its number as layer; ``tokens`` and ``all tokens`` are a
text model's vectors before they are pooled, without and with special tokens and position 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from isoscope.errors import IsoscopeError
from isoscope.models.inputs import open_data
from isoscope.models.source import Model
from isoscope.repair.advise.pairs import (
    cosines,
    dimension_shares,
    hubs,
    moves_of_cosine,
    nearest,
    neighbours_kept,
    quantiles,
)
from isoscope.repair.advise.sample import Half, Halves
from isoscope.repair.fit import fits
from isoscope.repair.fit.kinds import parse_repairs
from isoscope.repair.fit.transforms import fit
from isoscope.repair.hubs import NEAREST
from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.run.observe.observe import Progress, describe, observe
from isoscope.sites import Site

BEFORE = "before"
REPAIRS = ("centre", "standardise", "abtt", "whiten", "cluster-abtt", "rogue")
CLAIM = "mean_cosine_between"
GEOMETRY = (CLAIM, "relative_drift", "isoscore", "effective_rank", "top_share")
MOST_PAIRED = 2048  # vectors whose pairs are looked at: two million cosines
NAMED = 5  # dimensions that are told
TOKENS, ALL_TOKENS = "tokens", "all tokens"
SEQUENCES = 512  # of which tokens are read
BANDS = ("mean_cosine_rare", "mean_cosine_middle", "mean_cosine_frequent", "frequency_correlation")


@dataclass(frozen=True)
class Advised:
    """The rows, the names of the repairs that were tried, and remarks."""

    rows: tuple[Row, ...]
    tried: tuple[str, ...]
    notes: tuple[str, ...]


def recipes(text: str | None) -> tuple[str, ...]:
    """The repairs to try, separated by semicolons; all of them where none are named."""
    return parse_repairs(text) if text else REPAIRS


def advise(
    given: Halves, tried: Sequence[str] = REPAIRS,
    *, site: Site | None = None, run: str = "", progress: Progress | None = None
) -> Advised:  # fmt: skip
    """Fit each repair on one half, and read the other before and after; what cannot be fitted is a note."""
    site = site or Site("cloud")
    rows, near = _read(given.shown, given.sequences, BEFORE, site)
    rows += [*_dimensions(given), *_health(given, site)]
    lost = f"{given.left_out} of {given.seen} vectors have NaN or Inf and are left out"
    notes = [lost] if given.left_out else []
    names = []
    for done, recipe in enumerate(tried):
        try:
            fitted = fit(recipe, given.fit.points)
        except IsoscopeError as reason:
            notes.append(f"{recipe} is left out: {reason}")
            continue
        moved = Half(fitted.apply(given.shown.points), given.shown.unit)
        rows += _read(moved, given.sequences, fitted.name, site, near)[0]
        notes += fitted.notes
        names.append(fitted.name)
        if progress is not None:
            progress(done + 1, len(tried))
    found = tuple(replace(row, run=run) for row in rows)
    return Advised(found, tuple(names), tuple(dict.fromkeys(notes)))


def _read(
    half: Half, sequences: bool, name: str, site: Site, before: Tensor | None = None
) -> tuple[list[Row], Tensor | None]:
    """Rows of vectors under one name, and the nearest of each; `before` is who was so before a repair."""
    measures = (*GEOMETRY, "mean_norm") if name == BEFORE else GEOMETRY
    seen = describe(half.points, sequence=half.unit if sequences else None, measures=measures, name=name)
    # a repair changes vectors and with them their keys, but not their units
    moved = {CLAIM: moves_of_cosine(half.points, half.unit)}
    rows = [
        replace(row, kind=site.kind, layer=site.layer, influence=moved.get(row.measure))
        for row in seen.rows()
    ]
    unit = half.unit[:MOST_PAIRED]  # vectors stand in order of a hash: the first are a sample
    table = cosines(half.points[:MOST_PAIRED], unit)
    for per_cent, number in quantiles(table, unit).items():
        rows.append(_row(name, site, f"cosine_quantile_{per_cent:02}", number))
    if len(unit) <= 2 * NEAREST:
        return rows, None
    near = nearest(table)
    if before is not None:
        rows.append(_row(name, site, "neighbours_kept", neighbours_kept(before, near, unit)))
    found = zip(("hub_skewness", "anti_hubs"), hubs(near, unit), strict=True)
    return rows + [_row(name, site, measure, number) for measure, number in found], near


def _dimensions(given: Halves) -> list[Row]:
    """The dimensions that add most to the mean cosine of one half, and their share of the other's."""
    fitted = given.fit.points
    pointing = fitted / fitted.norm(dim=1, keepdim=True)
    order = (pointing.sum(0) ** 2 - (pointing**2).sum(0)).topk(min(NAMED, fitted.shape[1])).indices
    alone, joined = dimension_shares(given.shown.points, given.shown.unit, order)
    rows = []
    for which, one, with_those_before in zip(order.tolist(), alone, joined, strict=True):
        at = Site("dimension", which)
        rows += [_row(BEFORE, at, "dimension_share", one)]
        rows += [_row(BEFORE, at, "dimension_share_joined", with_those_before)]
    return rows


def _health(given: Halves, site: Site) -> list[Row]:
    points = given.shown.points
    norm = points.norm(dim=1)
    centred = points - points.mean(0)
    constant = (centred.norm(dim=0) / len(points) ** 0.5) <= fits.SAME * points.mean(0).abs()
    n, seen = len(points), given.seen
    found = {
        "norm_variation": (norm.std(correction=0) / norm.mean(), n),
        "constant_dimensions": (constant.sum(), n), "dimensions": (points.shape[1], n),
        "copies": (given.copies / given.usable, given.usable),
        "left_out": (given.left_out, seen), "no_direction": (given.no_direction, seen),
    }  # fmt: skip
    return [_row(BEFORE, site, name, Reading(float(value), of)) for name, (value, of) in found.items()]


def _row(model: str, site: Site, measure: str, reading: Reading) -> Row:
    return Row.at("", model, "", None, site.kind, site.layer, None, measure, reading)


def token_rows(
    model: Model, address: str, site: Site,
    *, limit: int | None, max_length: int | None, batch_size: int, pack: bool, run: str = "",
    progress: Progress | None = None
) -> list[Row]:  # fmt: skip
    """Rows of a text model's tokens at a site, on at most `SEQUENCES` sequences; none of other models."""
    if model.takes != "text":
        return []
    found: list[Row] = []
    for name, measures in ((TOKENS, [CLAIM, *BANDS]), (ALL_TOKENS, [CLAIM])):
        every = name == ALL_TOKENS
        data = open_data(
            address, model, limit=min(limit or SEQUENCES, SEQUENCES), max_length=max_length,
            batch_size=batch_size, pack=pack, special=every, first=every
        )  # fmt: skip
        seen = observe(
            model, data, measures=measures, layers=str(site), counterfactual=False, progress=progress
        )
        found += [replace(row, model=name, run=run) for row in seen.rows()]
    return found
