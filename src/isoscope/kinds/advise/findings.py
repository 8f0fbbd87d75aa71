"""A space as it is and after each repair, read from the rows of a run, and what may be claimed of it.

Decided here: what is claimed of a mean cosine, of a share of it or of neighbours must hold for the whole 95 %
interval. Effective rank and IsoScore have no valid one: they are held against their null by a factor of two.
Quantiles, lengths and copies describe these vectors, and are taken as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from isoscope.errors import IsoscopeError
from isoscope.repair.fit.kinds import parse
from isoscope.results.paired import paired
from isoscope.results.store import RunFolder
from isoscope.show.readings import SiteReading, read
from isoscope.show.say.shapes import STRONG, WEAK

BEFORE, TOKENS, ALL_TOKENS = "before", "tokens", "all tokens"
QUANTILES = (1, 5, 25, 50, 75, 95, 99)

# Where a word begins: each threshold is stated once.
ROGUE_SHARE = 0.5  # dimensions are the cause where they carry more than half of the mean cosine together
MOST_ROGUE = 3  # more dimensions are not few (Timkey & van Schijndel 2021 report the first three)
NARROW = 0.5  # of an isotropic cloud's effective rank: narrow below it; of its IsoScore: uneven below it
APART = 0.05  # mean cosines of tokens that differ by less are not worth a sentence, however sure they are
SAME_LENGTH, UNLIKE_LENGTH = 0.001, 0.2  # lengths vary by less than the first, by more than the second
MANY_COPIES = 0.01  # the share of the vectors from which on copies are told
MANY_ANTI_HUBS = 0.1  # the share of the vectors that are nobody's neighbour, above which it is told

MEASURES = {
    "cosine": "mean_cosine_between", "drift": "relative_drift", "isoscore": "isoscore",
    "rank": "effective_rank", "kept": "neighbours_kept", "anti_hubs": "anti_hubs", "norm": "mean_norm",
    "norm_variation": "norm_variation", "copies": "copies", "constant": "constant_dimensions",
    "left_out": "left_out", "no_direction": "no_direction", "frequent": "mean_cosine_frequent",
}  # fmt: skip
"""The measure behind each reading of a space."""
NONE = SiteReading(math.nan, 0, model="", step=None, kind="", layer=None, head=None, measure="", place=0)
"""The reading of a row that does not exist."""


@dataclass(frozen=True)
class Space:
    """Vectors as they are, after a repair, or tokens; without rare ones `rarer` are those in between."""

    name: str
    quantiles: Mapping[int, SiteReading] = field(default_factory=dict)
    cosine: SiteReading = NONE
    drift: SiteReading = NONE
    isoscore: SiteReading = NONE
    rank: SiteReading = NONE
    kept: SiteReading = NONE
    anti_hubs: SiteReading = NONE
    norm: SiteReading = NONE
    norm_variation: SiteReading = NONE
    copies: SiteReading = NONE
    constant: SiteReading = NONE
    left_out: SiteReading = NONE
    no_direction: SiteReading = NONE
    frequent: SiteReading = NONE
    rarer: SiteReading = NONE

    @property
    def label(self) -> str:
        """What tables and figures call it."""
        return "as it is" if self.name == BEFORE else self.name

    @property
    def kind(self) -> str:
        """The step of a repair that has one only, without its numbers: abtt of abtt:4."""
        try:
            first, *others = parse(self.name)
        except IsoscopeError:  # a folder may hold any name
            return ""
        return "" if others else first.kind.name


@dataclass(frozen=True)
class Dimension:
    """A dimension, what share of the mean cosine it makes, and what with those before it."""

    which: int
    alone: SiteReading
    joined: SiteReading


@dataclass(frozen=True)
class Findings:
    """The spaces, the dimensions, and what they decide; `tokens` are content tokens."""

    before: Space
    after: tuple[Space, ...]
    dimensions: tuple[Dimension, ...]
    width: int
    tokens: Space
    all_tokens: Space
    pool: str = ""

    def repaired(self, kind: str) -> Space:
        """The space after the repair of this kind alone; one without a name where that was not tried."""
        return next((space for space in self.after if space.kind == kind), Space(""))

    @property
    def crowded(self) -> bool:
        """Whether the vectors share a direction by more than a convention's worth, for certain."""
        return self.before.cosine.above(WEAK)

    @property
    def uneven(self) -> bool:
        """Whether the variance of some directions is so much larger that half of the evenness is lost."""
        return self.before.isoscore.known and self.before.isoscore.value < NARROW * self.before.isoscore.null

    @property
    def verdict(self) -> str:
        """Which case this is; the tables of sentences have a text for each.

        "groups" are pairs of which some are very much alike and others not at all, as in clusters,
        "one direction" is a cone of which less than `WEAK` is left without the mean, "several causes" one of
        which more is left, each for certain; "cone" is one of which neither is known.
        """
        mean, left = self.before.cosine, self.repaired("centre").cosine
        least, most = (self.before.quantiles[end].value for end in (5, 95))
        cases = {
            "no interval": not mean.bounded,
            "around 0": mean.below(WEAK),
            "unclear": not self.crowded,
            "groups": not (least > WEAK or most < STRONG),
            "one direction": left.below(WEAK),
            "several causes": left.above(WEAK),
        }
        return next((name for name, holds in cases.items() if holds), "cone")

    @property
    def rogue(self) -> int:
        """How few dimensions carry over half of the mean cosine, and more than chance, for certain; or 0."""
        few = self.dimensions[:MOST_ROGUE]
        carry = [each.joined.above(max(ROGUE_SHARE, each.joined.null)) for each in few]
        return 1 + carry.index(True) if self.crowded and any(carry) and self.width > 2 * MOST_ROGUE else 0

    @property
    def enough(self) -> list[Space]:
        """The repairs that bring the mean cosine within the convention around 0, for certain."""
        return [each for each in self.after if each.cosine.below(WEAK) and each.cosine.above(-WEAK)]

    @property
    def gentlest(self) -> list[Space]:
        """Of the repairs that are enough, that which keeps most neighbours, and those not told from it."""
        known = sorted((each for each in self.enough if each.kept.bounded), key=lambda each: -each.kept.value)
        best, looks = known[0].kept if known else NONE, max(1, len(known) - 1)
        return [each for each in known if not paired(best, each.kept, looks).below(0)]


def findings_of(folder: RunFolder) -> Findings:
    """The findings of the advice in a folder."""
    return findings(folder.frame(influence=True), str(folder.run.question.get("pool", "")))


def findings(rows: pd.DataFrame, pool: str = "") -> Findings:
    """Read the rows of a run of `isoscope advise`; `pool` is how a model's vectors were made."""
    spaces: dict[str, dict[str, SiteReading]] = {}
    shares: dict[int, dict[str, SiteReading]] = {}
    for one in read(rows):
        if one.kind == "dimension" and one.layer is not None:
            shares.setdefault(one.layer, {})[one.measure] = one
        else:
            spaces.setdefault(one.model, {})[one.measure] = one
    if BEFORE not in spaces:
        raise IsoscopeError("these rows are not of `isoscope advise`: none is of the vectors as they are.")
    counted = spaces[BEFORE].get("dimensions", NONE)
    width = int(counted.value) if counted.known else 0
    before, tokens, all_tokens = (_space(name, spaces.pop(name, {})) for name in (BEFORE, TOKENS, ALL_TOKENS))
    after = tuple(_space(name, readings) for name, readings in spaces.items())
    dimensions = tuple(
        Dimension(which, share.get("dimension_share", NONE), share.get("dimension_share_joined", NONE))
        for which, share in shares.items()
    )
    return Findings(before, after, dimensions, width, tokens, all_tokens, pool)


def _space(name: str, readings: Mapping[str, SiteReading]) -> Space:
    quantiles = {q: readings.get(f"cosine_quantile_{q:02}", NONE) for q in QUANTILES}
    rare, middle = (readings.get(f"mean_cosine_{band}", NONE) for band in ("rare", "middle"))
    others = {name: readings.get(measure, NONE) for name, measure in MEASURES.items()}
    return Space(name, quantiles, rarer=rare if rare.known else middle, **others)
