"""What advice hangs on, read from the rows of a run: a space as it is and after each repair, and why.

No torch and no model: sentences and pages are made again from a run folder alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from isoscope.errors import IsoscopeError
from isoscope.show.readings import SiteReading, read

BEFORE, TOKENS, ALL_TOKENS = "before", "tokens", "all tokens"
QUANTILES = (1, 5, 25, 50, 75, 95, 99)


NONE = SiteReading(math.nan, 0, model="", step=None, kind="", layer=None, head=None, measure="", place=0)
"""The reading of a row that does not exist."""


@dataclass(frozen=True)
class Space:
    """Vectors as they are (`before`) or after the repair of this name."""

    name: str
    cosine: SiteReading
    drift: SiteReading
    isoscore: SiteReading
    rank: SiteReading
    top: SiteReading
    quantiles: Mapping[int, SiteReading]
    kept: SiteReading = NONE
    hubness: SiteReading = NONE
    anti_hubs: SiteReading = NONE

    @property
    def kind(self) -> str:
        """The first step of the repair, without its numbers, where it has one step only.

        >>> Space("abtt:4", NONE, NONE, NONE, NONE, NONE, {}).kind
        'abtt'
        """
        return "" if "," in self.name else self.name.split(":")[0]


@dataclass(frozen=True)
class Dimension:
    """A dimension, what share of the mean cosine it makes, and what with those before it."""

    which: int
    alone: SiteReading
    joined: SiteReading


@dataclass(frozen=True)
class Tokens:
    """Mean cosines of a text model's tokens: content tokens, by how often they occur, and all tokens.

    `rarer` are the rare ones, or, where a text is too short to have any, those in between.
    """

    cosine: SiteReading
    rarer: SiteReading
    frequent: SiteReading
    with_special: SiteReading


@dataclass(frozen=True)
class Findings:
    """All that is said hangs on this."""

    before: Space
    after: tuple[Space, ...]
    dimensions: tuple[Dimension, ...]
    width: int
    norm: SiteReading
    norm_variation: SiteReading
    copies: SiteReading
    constant: SiteReading
    left_out: SiteReading
    no_direction: SiteReading
    tokens: Tokens
    pool: str = ""

    def repaired(self, kind: str) -> Space | None:
        """The space after the repair of this kind, where it was tried alone."""
        return next((space for space in self.after if space.kind == kind), None)


def findings(rows: pd.DataFrame, pool: str = "") -> Findings:
    """Read the rows of a run of `isoscope advise`; `pool` is how a model's vectors were made."""
    held: dict[tuple[str, str], SiteReading] = {}
    sites: dict[int, dict[str, SiteReading]] = {}
    for one in read(rows):
        if one.kind == "dimension" and one.layer is not None:
            sites.setdefault(one.layer, {})[one.measure] = one
        else:
            held[one.model, one.measure] = one
    names = [str(name) for name in rows["model"].drop_duplicates()]
    if BEFORE not in names:
        raise IsoscopeError("these rows are not of `isoscope advise`: none is of the vectors as they are.")

    def at(measure: str, model: str = BEFORE) -> SiteReading:
        return held.get((model, measure), NONE)

    rare = at("mean_cosine_rare", TOKENS)
    return Findings(
        before=_space(held, BEFORE),
        after=tuple(_space(held, name) for name in names if name not in (BEFORE, TOKENS, ALL_TOKENS)),
        dimensions=tuple(
            Dimension(which, own.get("dimension_share", NONE), own.get("dimension_share_joined", NONE))
            for which, own in sites.items()
        ),
        width=int(at("dimensions").value) if math.isfinite(at("dimensions").value) else 0,
        norm=at("mean_norm"),
        norm_variation=at("norm_variation"),
        copies=at("copies"),
        constant=at("constant_dimensions"),
        left_out=at("left_out"),
        no_direction=at("no_direction"),
        tokens=Tokens(
            at("mean_cosine_between", TOKENS),
            rare if rare.known else at("mean_cosine_middle", TOKENS),
            at("mean_cosine_frequent", TOKENS),
            at("mean_cosine_between", ALL_TOKENS),
        ),
        pool=pool,
    )


def _space(held: Mapping[tuple[str, str], SiteReading], name: str) -> Space:
    def at(measure: str) -> SiteReading:
        return held.get((name, measure), NONE)

    return Space(
        name=name,
        cosine=at("mean_cosine_between"),
        drift=at("relative_drift"),
        isoscore=at("isoscore"),
        rank=at("effective_rank"),
        top=at("top_share"),
        quantiles={per_cent: at(f"cosine_quantile_{per_cent:02}") for per_cent in QUANTILES},
        kept=at("neighbours_kept"),
        hubness=at("hub_skewness"),
        anti_hubs=at("anti_hubs"),
    )
