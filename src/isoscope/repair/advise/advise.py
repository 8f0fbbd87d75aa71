"""What advice is made of: a space as it is and after each repair, as rows.

Every number is of vectors that no repair was fitted on. In rows the model is ``before`` or the name of a
repair; the site of a dimension is ``dimension`` with its number as layer; ``tokens`` and ``all tokens`` are a
text model's vectors before they are pooled, without and with special tokens and position 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from isoscope.errors import IsoscopeError
from isoscope.repair.advise.pairs import cosines, dimension_shares, hubs, nearest, neighbours_kept, quantiles
from isoscope.repair.advise.sample import Half, Halves
from isoscope.repair.fit import fits
from isoscope.repair.fit.kinds import parse
from isoscope.repair.fit.transforms import fit
from isoscope.repair.hubs import NEAREST
from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.run.observe.observe import describe
from isoscope.sites import Site

BEFORE = "before"
REPAIRS = ("centre", "standardise", "abtt", "whiten", "cluster-abtt", "rogue")
GEOMETRY = ("mean_cosine_between", "relative_drift", "isoscore", "effective_rank", "top_share")
MOST_PAIRED = 2048
"""Vectors whose pairs are looked at: two million cosines."""

NAMED = 5
"""Dimensions that are told."""

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Advised:
    """The rows, the names of the repairs that were tried, and remarks."""

    rows: tuple[Row, ...]
    tried: tuple[str, ...]
    notes: tuple[str, ...]


def recipes(text: str | None) -> tuple[str, ...]:
    """The repairs to try, separated by semicolons; all of them where none are named.

    >>> recipes("centre; abtt,whiten:64")
    ('centre', 'abtt,whiten:64')
    """
    found = tuple(part.strip() for part in text.split(";") if part.strip()) if text else REPAIRS
    for each in found:
        parse(each)
    if not found:
        raise IsoscopeError(f"no repair is named; for example '{';'.join(REPAIRS[:3])}'.")
    return tuple(dict.fromkeys(found))


def advise(
    given: Halves,
    tried: Sequence[str] = REPAIRS,
    *,
    site: Site | None = None,
    run: str = "",
    progress: Progress | None = None,
) -> Advised:
    """Fit each repair on one half, and read the other half as it is and repaired.

    A repair that cannot be fitted on these vectors is left out, with its reason among the notes.
    """
    site = site or Site("cloud")
    shown, few = given.shown, _first(given.shown)
    table = cosines(few.points, few.unit)
    near = nearest(table) if len(few) > 2 * NEAREST else None
    rows = [*_geometry(shown, given.sequences, BEFORE, site), *_cosines(table, few, BEFORE, site)]
    rows += [*_hubs(near, few, BEFORE, site), *_dimensions(given), *_health(given, site)]
    notes = [f"{given.left_out} of {given.seen} vectors have NaN or Inf and are left out"] * bool(
        given.left_out
    )
    names = []
    for done, recipe in enumerate(tried):
        try:
            fitted = fit(recipe, given.fit.points)
        except IsoscopeError as reason:
            notes.append(f"{recipe} is left out: {reason}")
            continue
        moved = Half(fitted.apply(shown.points), shown.unit)
        few_moved = _first(moved)
        there = cosines(few_moved.points, few.unit)
        rows += [*_geometry(moved, given.sequences, fitted.name, site)]
        rows += [*_cosines(there, few_moved, fitted.name, site)]
        if near is not None:
            now = nearest(there)
            kept = neighbours_kept(near, now, few.unit)
            rows += [_row(fitted.name, site, "neighbours_kept", kept), *_hubs(now, few, fitted.name, site)]
        notes += fitted.notes
        names.append(fitted.name)
        if progress is not None:
            progress(done + 1, len(tried))
    found = tuple(replace(row, run=run) for row in rows)
    return Advised(found, tuple(names), tuple(dict.fromkeys(notes)))


def _first(half: Half) -> Half:
    """As many as pairs are looked at of: they stand in order of a hash, so the first are a sample."""
    return Half(half.points[:MOST_PAIRED], half.unit[:MOST_PAIRED])


def _geometry(half: Half, sequences: bool, name: str, site: Site) -> Iterable[Row]:
    more = ("mean_norm",) if name == BEFORE else ()
    whose = half.unit if sequences else None
    seen = describe(half.points, sequence=whose, measures=(*GEOMETRY, *more), name=name)
    return [replace(row, kind=site.kind, layer=site.layer) for row in seen.rows()]


def _cosines(table: Tensor, half: Half, name: str, site: Site) -> list[Row]:
    return [
        _row(name, site, f"cosine_quantile_{per_cent:02}", number)
        for per_cent, number in quantiles(table, half.unit).items()
    ]


def _hubs(near: Tensor | None, half: Half, name: str, site: Site) -> list[Row]:
    if near is None:
        return []
    found = zip(("hub_skewness", "anti_hubs"), hubs(near, half.unit), strict=True)
    return [_row(name, site, measure, number) for measure, number in found]


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
    found = {
        "norm_variation": (float(norm.std(correction=0) / norm.mean()), len(points)),
        "constant_dimensions": (float(constant.sum()), len(points)),
        "dimensions": (float(points.shape[1]), len(points)),
        "copies": (given.copies / given.usable, given.usable),
        "left_out": (float(given.left_out), given.seen),
        "no_direction": (float(given.no_direction), given.seen),
    }
    return [_row(BEFORE, site, name, Reading(value, n)) for name, (value, n) in found.items()]


def _row(model: str, site: Site, measure: str, reading: Reading) -> Row:
    return Row.at("", model, "", None, site.kind, site.layer, None, measure, reading)
