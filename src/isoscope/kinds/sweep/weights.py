"""Weights along the steps: localisation by layer, vocabulary matrices, the final norm.

A line is a layer or a matrix. Plane and spectra of a checkpoint are on the page of `isoscope weights`.
"""

from __future__ import annotations

from dataclasses import replace

from isoscope.show.figures.maps import heads_over_steps
from isoscope.show.figures.trajectories import Depths
from isoscope.show.measures import FAMILIES, Family, how_shown, in_order, name_of
from isoscope.show.page.section import WEIGHED, Section, explanations
from isoscope.show.page.training import Training, step_panel
from isoscope.show.readings import QUERY_KEY, SiteReading
from isoscope.show.say.training import changed

_MAPPED = 2
_VOCABULARY = (  # measures of other families that its section shows first; all others are in the rows
    "mean_cosine_between", "relative_drift", "partition_isotropy_unit", "isoscore",
    "participation_ratio_split", "mean_norm", "effective_rank", "singular_entropy",
)  # fmt: skip


def weight_trajectories(of: Training) -> list[tuple[Section, list[SiteReading]]]:
    """The sections of weights that have more than one step, with the readings of their lines."""
    made = [_section(of, family) for family in WEIGHED]
    return [section for section in made if section is not None]


def _section(of: Training, family: str) -> tuple[Section, list[SiteReading]] | None:
    own = [r for r in of.readings if WEIGHED[family](r.kind)]
    named = in_order((r.measure for r in own if r.known), family)
    shown = (*(_VOCABULARY if family == "vocabulary" else ()), *FAMILIES[family].measures)
    named = sorted((m for m in named if m in shown and how_shown(m).instead not in named), key=shown.index)
    if not named or len({r.step for r in own}) < 2:
        return None
    own, places = _placed(own, family, of.places)
    wide = _MAPPED if family == "query_key" else 0
    panels = [
        step_panel([r for r in own if r.measure == measure], of.axis, places, of.told, mapped=at < wide)
        for at, measure in enumerate(named)
    ]
    heads = heads_over_steps(of.rows, family, of.axis, of.told) if family == "query_key" else None
    first = [changed([r for r in own if r.measure == m], name_of(m, of.told)) for m in named[:2]]
    asks = FAMILIES[family]
    section = Section(
        family, Family(asks.heading, asks.asks, ()), small=panels[wide:], key=dict(places.key),
        explained=explanations(named, of.told), large=panels[:wide], places=places,
        changes="\n".join(filter(None, first)), heads=heads,
    )  # fmt: skip
    return section, own


def _placed(own: list[SiteReading], family: str, places: Depths) -> tuple[list[SiteReading], Depths]:
    """Layers by number; matrices and norms, which have none, in the order of their names."""
    if family == "query_key":
        names = {r.place: f"layer {r.layer}" for r in own if r.kind in QUERY_KEY}
        return own, Depths(dict(sorted((places.names | names).items())))
    kinds = sorted({r.kind for r in own})
    at = {kind: i for i, kind in enumerate(kinds)}
    names = {i: kind.replace("_", " ") for kind, i in at.items()}
    return [replace(r, place=at[r.kind]) for r in own], Depths(names)
