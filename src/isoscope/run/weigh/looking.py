"""What a pass over data shows of where attention falls: the inputs as a walk, and the last query's weights.

W acts on what enters its projections, x = γ⊙x̂ + β, as it is stored: the same as γ folded into W with the
increments of x̂. What has no last query over keys up to itself is left out and said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from isoscope.data.batch import Batch
from isoscope.data.counting import select_counted
from isoscope.geometry.attention import seen
from isoscope.models.attention.tap import Attended
from isoscope.models.survey import Survey
from isoscope.models.weights.read import Step
from isoscope.run.observe.attend import settled
from isoscope.sites import Site
from isoscope.stats.profiles import Profiles
from isoscope.stats.seen import GROUPS, home
from isoscope.stats.walks import Increments, WalkSpread


@dataclass(frozen=True, eq=False)
class Walked:
    """The inputs of one attention as a walk: their increments, and how far they move, by jackknife group."""

    increments: Increments
    spreads: tuple[WalkSpread, ...]  # one a group
    sequences: Tensor  # [G] with at least one step
    joint: int = 0  # sequences that share their unit with others

    @classmethod
    def of(cls, inputs: Tensor, counts: Tensor, units: Tensor, joint: int = 0) -> Walked:
        """Fold inputs [b, t, d], which of them count [b, t], and the unit of each sequence [b]."""
        counts = counts & inputs.isfinite().all(-1)
        group = (units % GROUPS).cpu()
        steps = (counts[:, 1:] & counts[:, :-1]).any(1).cpu()
        sequences = torch.bincount(group[steps], minlength=GROUPS)
        return cls(Increments.of(inputs, counts), _spreads(inputs, counts, group), sequences, joint)

    def merge(self, other: Walked) -> Walked:
        """The record of both streams."""
        spreads = tuple(one.merge(two) for one, two in zip(self.spreads, other.spreads, strict=True))
        sequences, joint = self.sequences + other.sequences, self.joint + other.joint
        return Walked(self.increments.merge(other.increments), spreads, sequences, joint)

    @property
    def spread(self) -> WalkSpread:
        """How far all of them move."""
        return reduce(WalkSpread.merge, self.spreads)

    def slopes_without(self) -> Tensor:
        """The slope with each group left out, [G]."""
        rest = [[one for i, one in enumerate(self.spreads) if i != left] for left in range(GROUPS)]
        return torch.tensor([reduce(WalkSpread.merge, some).slope for some in rest], dtype=torch.float64)


def _spreads(inputs: Tensor, counts: Tensor, group: Tensor) -> tuple[WalkSpread, ...]:
    """The spread of each group. Twin: `WalkSpread.of`, of which this takes a fifth of the time."""
    lags = [2**power for power in range((inputs.shape[1] - 1).bit_length())]
    found = torch.zeros(GROUPS, 2, len(lags), dtype=torch.float64)
    for x, mine, at in zip(inputs.double(), counts, group.tolist(), strict=True):
        still = torch.where(mine[:, None], x, 0.0)
        both = [(mine[lag:] & mine[:-lag]).double() for lag in lags]
        squares = [
            (still[lag:] - still[:-lag]).square_().sum(1) @ pair for lag, pair in zip(lags, both, strict=True)
        ]
        if lags:
            found[at] += torch.stack([*squares, *(pair.sum() for pair in both)]).view(2, -1).cpu()
    return tuple(WalkSpread(*one) for one in found)


class Localiser:
    """Gathers walks and profiles by site, batch after batch. `steps` are the attentions whose W is known."""

    def __init__(self, steps: Iterable[Step], found: Survey, memory: float) -> None:
        self.found = found
        self.left_out: dict[Site, str] = {}  # attentions that are not compared with their prediction
        self.walks: dict[Site, Walked] = {}
        self._profiles: dict[tuple[Site, str], Profiles] = {}
        self._inputs, self._told = _inputs_of(steps)
        self._thin(memory)
        self._batch: Batch | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The modules whose input is wanted."""
        return tuple(dict.fromkeys(name for name, _ in self._inputs))

    @property
    def profiles(self) -> Mapping[Site, Profiles]:
        """The profiles of every site, the heads of all its attentions side by side."""
        sites = dict.fromkeys(site for site, _ in self._profiles)
        each = {site: [one for (at, _), one in self._profiles.items() if at == site] for site in sites}
        return {site: reduce(Profiles.beside_heads, some) for site, some in each.items()}

    def start(self, batch: Batch) -> None:
        """What comes next is of this batch."""
        self._batch = batch

    def enters(self, name: str, call: int, inputs: Tensor) -> None:
        """Fold what enters a projection."""
        step = self._inputs.get((name, call))
        if step is None or self._batch is None:
            return
        if step.place.cut == "headed" and inputs.dim() == 3:  # XLNet has time first inside
            inputs = inputs.transpose(0, 1)
        if inputs.dim() != 3 or len(inputs) != len(self._batch):
            self.left_out[step.site] = "what enters is no sequence of vectors"
            return
        inputs = inputs.to(home(inputs.device))
        counts = self._counts(step.site, inputs.shape).to(inputs.device)
        batch = self._batch
        new = Walked.of(inputs, counts, batch.keys if batch.units is None else batch.units, batch.joint)
        self.walks[step.site] = self.walks[step.site].merge(new) if step.site in self.walks else new

    def attends(self, site: Site, shown: Attended) -> None:
        """Fold the last query of every sequence."""
        if self._batch is None or site.kind != "attention":
            return
        attended = settled(shown, len(self._batch))
        if isinstance(attended, str):
            self.left_out[site] = attended
            return
        some = attended.query if attended.query is not None else attended.scores
        assert some is not None
        size, _, length, _ = some.shape
        keys = length if attended.key is None else attended.key.shape[2]
        keys = keys if attended.scores is None else attended.scores.shape[3]
        if size != len(self._batch) or (keys != length and not attended.causal):
            self.left_out[site] = "attention within windows, or over keys of another length, is left out"
            return
        counts = self._counts(site, (size, length, 1)).to(some.device)
        new = _last(attended, counts, keys - length)
        place = site, attended.module
        self._profiles[place] = self._profiles[place].merge(new) if place in self._profiles else new

    def remarks(self) -> list[str]:
        """What was left out, and why: each reason once, with the attentions it holds for."""
        told = [*filter(None, [self.found.unseen]), *self._told]
        for why in dict.fromkeys(self.left_out.values()):
            sites = [str(site) for site, said in self.left_out.items() if said == why]
            told.append(f"{sites[0]} to {sites[-1]}: {why}" if len(sites) > 1 else f"{sites[0]}: {why}")
        return [f"localisation: {one}" for one in told]

    def _counts(self, site: Site, shape: Iterable[int]) -> Tensor:
        """Which positions count, [b, t]."""
        assert self._batch is not None
        decoder = Site("layer", site.layer) in self.found.decoder
        size, length, width = shape
        counted = select_counted((size, length, width), self._batch, decoder=decoder)
        if counted.rows is None:
            return torch.ones(size, length, dtype=torch.bool)
        mine = torch.zeros(size * length, dtype=torch.bool)
        mine[counted.rows] = True
        return mine.view(size, length)

    def _thin(self, memory: float) -> None:
        """Keep as many attentions, evenly, as their d×d records fit: two of each while they merge."""
        widths = [self.found.width(Site("layer", 1)) for _ in self._inputs]
        room = max(1, int(memory // max(16 * widths[0] ** 2, 1))) if widths else 0
        if len(widths) <= room:
            return
        chosen = {round(number * (len(widths) - 1) / max(room - 1, 1)) for number in range(room)}
        self._inputs = {key: step for i, (key, step) in enumerate(self._inputs.items()) if i in chosen}
        kept = f"{len(self._inputs)} of {len(widths)} attentions are kept"
        self._told = (*self._told, f"{kept}, as many as fit {memory:.2g} bytes")


def _inputs_of(steps: Iterable[Step]) -> tuple[dict[tuple[str, int], Step], tuple[str, ...]]:
    """The attentions to oneself by the module that makes their queries and its call; and what is left out."""
    found: dict[tuple[str, int], Step] = {}
    told: dict[str, None] = {}
    calls: dict[str, int] = {}
    sites: set[Site] = set()
    for step in steps:
        name = step.place.query[0].rpartition(".")[0]
        call = calls[name] = calls.get(name, -1) + 1
        if step.place.cross:
            told["attention across two sequences is left out: its keys are no walk to its query"] = None
        elif step.site in sites:
            told[f"{step.site} has several attentions: only the first is predicted"] = None
        else:
            found[name, call] = step
            sites.add(step.site)
    return found, tuple(told)


def _last(attended: Attended, counts: Tensor, offset: int) -> Profiles:
    """The profile of the last query that counts of every sequence; `offset` is how many keys came before."""
    size, length = counts.shape
    rows = torch.arange(size, device=counts.device)
    last = length - 1 - counts.flip(1).int().argmax(1)
    own, any_one = last + offset, counts.any(1)
    if attended.scores is not None:
        scores = attended.scores[rows, :, last]
        return Profiles.of(scores, seen(scores), own, any_one)
    query, keys = attended.query, attended.key
    assert query is not None and keys is not None
    asked = query[rows, :, last].double()
    asked = asked.reshape(size, keys.shape[1], -1, asked.shape[2])
    scores = attended.scale * torch.einsum("bgre,bgse->bgrs", asked, keys.double()).flatten(1, 2)
    visible = torch.ones_like(scores, dtype=torch.bool)
    if attended.causal:
        visible &= torch.arange(keys.shape[2], device=own.device) <= own[:, None, None]
    if attended.mask is not None:
        row = attended.mask.expand(size, scores.shape[1], length, keys.shape[2])[rows, :, last]
        visible &= seen(row)
        scores = scores if row.dtype == torch.bool else scores + row
    return Profiles.of(scores, visible, own, any_one)
