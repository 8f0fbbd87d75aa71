"""Fold what the taps show into records, site by site.

Layers and attention are folded in one pass; then, where it is asked for, attention is read once more
without its mean query, which is known only when the first pass is done. A block may hold several attentions:
modules of their own are heads of their own, side by side; one module that is called again (on chunks of a
sequence) has more rows of the same heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import reduce
from itertools import accumulate, pairwise
from typing import Any, cast

import torch
from torch import Tensor, nn

from isoscope.data.batch import Batch
from isoscope.kernels.attention import chosen_backend
from isoscope.models.attention import Attended, Learnt, attention_tap
from isoscope.models.survey import Survey
from isoscope.models.tap import at_rest, tap
from isoscope.run.attend import (
    AtPositions,
    no_counterfact,
    random_directions,
    see_counterfact,
    see_heads,
    settled,
)
from isoscope.run.layers import Layers
from isoscope.run.memory import Plan
from isoscope.sites import Site
from isoscope.stats.base import Stat
from isoscope.stats.clouds import Clouds
from isoscope.stats.counterfactual import Counterfactual
from isoscope.stats.heads import Heads
from isoscope.stats.queries import Queries
from isoscope.stats.rows import Rows

OF_ATTENTION: tuple[type[Stat], ...] = (Rows, Queries, Counterfactual)
SEQUENCES = 64  # that the counterfactual is read on
Place = tuple[Site, str]  # a site, and the module that attends there


def smallest_keys(batches: Sequence[Batch], most: int, batch_axis: int) -> list[Batch]:
    """Of these batches, the `most` sequences with the smallest keys: the same in whatever order they came."""
    keys = torch.cat([batch.keys for batch in batches])
    kept = torch.zeros(len(keys), dtype=torch.bool)
    kept[keys.argsort(stable=True)[:most]] = True
    ends = list(accumulate(map(len, batches), initial=0))
    rows = [torch.nonzero(kept[start:end]).flatten() for start, end in pairwise(ends)]
    return [
        batch if len(mine) == len(batch) else batch.take(mine, batch_axis)
        for batch, mine in zip(batches, rows, strict=True)
        if len(mine)
    ]


class Folder:
    """Records of the sites chosen. `attention` are the kinds of record that are kept of attention.

    Covariances are made of the share `covariance_rows` of the vectors.
    """

    def __init__(
        self,
        sites: tuple[Site, ...],
        kept: Plan,
        attention: tuple[type[Stat], ...],
        found: Survey,
        covariance_rows: float = 1.0,
    ) -> None:
        self.kept, self.found = kept, found
        self._layers = Layers(
            kept, found, lambda site, stat, new: self._merge((site, ""), stat, new), covariance_rows
        )
        self._held: dict[Site, dict[str, dict[type[Stat], Stat]]] = {site: {} for site in sites}
        self.attends = any("attention" in site.kind for site in sites) and bool(attention)
        self.counterfactual = self.attends and Counterfactual in attention
        wanted: tuple[type[Stat], ...] = (*attention, Queries) if self.counterfactual else attention
        wanted = (*wanted, Clouds) if Queries in wanted else wanted  # the picture of what is measured
        self._kinds = tuple(dict.fromkeys(stat for stat in wanted if stat is not Counterfactual))
        self._learnt = Learnt()
        self._near: tuple[Batch, Batch] | None = None  # the batch that is running, and where attention is
        self._shapes: dict[Site, tuple[int, ...]] = {}
        self._turned: dict[Place, str] = {}
        self._remarks: dict[Site, str] = {}
        self.facts: dict[str, object] = {}

    @property
    def records(self) -> dict[Site, dict[type[Stat], Stat]]:
        """The records of every site, the heads of all its attentions side by side."""
        found: dict[Site, dict[type[Stat], Stat]] = {}
        for site, places in self._held.items():
            each: list[Any] = list(places.values())
            kinds = [stat for stat in each[0] if all(stat in records for records in each)] if each else []
            found[site] = {
                stat: reduce(lambda one, other: one.beside_heads(other), [records[stat] for records in each])
                for stat in kinds
            }
        return found

    def fold(self, module: nn.Module, batch: Batch) -> None:
        """One batch: every layer and, where it is asked for, every attention."""

        def layer(site: Site, seen: Tensor) -> None:
            if site in self._held:
                with torch._C.DisableTorchFunction():  # the mode that looks for attention need not see this
                    remark = self._layers.add(site, seen.detach(), batch)
                if remark:
                    self._remarks[site] = remark

        def attention(site: Site, attended: Attended) -> None:
            if site in self._held:
                self._add_attention(site, attended, batch)

        found = self.found
        with at_rest(module), ExitStack() as taps:
            taps.enter_context(tap(module, found.blocks, layer, gives=found.gives, takes=found.takes))
            if self.attends:
                taps.enter_context(
                    attention_tap(
                        module,
                        found.blocks,
                        attention,
                        takes=found.takes,
                        learnt=self._learnt,
                        unrotated=Queries in self._kinds,
                    )
                )
            batch.call(module)
        self._layers.finish()

    def fold_counterfactual(self, module: nn.Module, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The same attention again, over these batches, with each head's mean query taken away.

        Gives every batch that is done.
        """
        held = tuple(batches)
        positions: dict[Place, AtPositions] = {}
        alone = {place for place, how in self._turned.items() if how == _LEAVING_OUT}

        def gather(place: Place, attended: Attended, batch: Batch) -> None:
            if place in alone:
                new = AtPositions.of(self._heads(place[0], attended, batch)[0])
                positions[place] = positions[place].merge(new) if place in positions else new

        def take_away(place: Place, attended: Attended, batch: Batch) -> None:
            if not no_counterfact(attended):
                self._add_counterfactual(place, attended, batch, positions.get(place))

        for receive in (gather, take_away) if alone else (take_away,):
            for batch in held:
                self._attend(module, batch, receive)
                if receive is take_away:
                    yield batch
        said = {
            how for (site, module), how in self._turned.items() if Counterfactual in self._held[site][module]
        }
        self.facts["counterfactual"] = {
            "sequences": sum(map(len, held)),
            "mean query": ", ".join(sorted(said)) or "cannot be had",
        }

    def _attend(
        self, module: nn.Module, batch: Batch, receive: Callable[[Place, Attended, Batch], None]
    ) -> None:
        def attention(site: Site, attended: Attended) -> None:
            there = settled(attended, len(batch))
            if site in self._held and not isinstance(there, str) and self._shapes.get(site) == _shape(there):
                receive((site, there.module), there, batch)

        found = self.found
        with (
            at_rest(module),
            attention_tap(module, found.blocks, attention, takes=found.takes, learnt=self._learnt),
        ):
            batch.call(module)

    def _heads(self, site: Site, attended: Attended, batch: Batch) -> tuple[Heads, str]:
        some = attended.query if attended.query is not None else attended.scores
        if self._near is None or self._near[0] is not batch:
            self._near = batch, batch if some is None else batch.counted_on(some.device)
        return see_heads(attended, self._near[1], decoder=Site("layer", site.layer) in self.found.decoder)

    def _add_attention(self, site: Site, shown: Attended, batch: Batch) -> None:
        attended = settled(shown, len(batch))
        if isinstance(attended, str):
            self._remarks[site] = attended
            return
        if self._shapes.setdefault(site, _shape(attended)) != _shape(attended):
            self._remarks[site] = "a second attention of the block, with heads of another shape, is left out"
            return
        heads, remark = self._heads(site, attended, batch)
        if remark or attended.why:
            self._remarks[site] = "; ".join(filter(None, (remark, attended.why)))
        place = site, attended.module
        for stat in self._kinds:
            self._merge(place, stat, stat.of(heads))
        why = no_counterfact(attended)
        self._turned[place] = (
            f"none: {why}" if why else _LEAVING_OUT if attended.unrotated is None else _BEFORE
        )
        if "attention rows" not in self.facts and attended.query is not None and attended.key is not None:
            name, why = chosen_backend(attended.query, attended.key, mask=attended.mask)
            self.facts["attention rows"] = f"{name}: {why}"

    def _add_counterfactual(
        self, place: Place, attended: Attended, batch: Batch, at: AtPositions | None
    ) -> None:
        site, module = place
        heads, _ = self._heads(site, attended, batch)
        known = cast("Queries", self._held[site][module][Queries])
        means, behind = known.mean_query, known.behind_mean[:, None]
        random = random_directions(means.shape, seed=site.layer or 0).to(means.device)
        if at is not None:
            assert attended.query is not None
            turned, behind, heads = at.without(heads, len(attended.query) // len(batch))
            chance = random[:, None, :] * turned.norm(dim=-1, keepdim=True)
        elif attended.rotate is None:
            return
        else:
            turned = attended.rotate(means)
            chance = attended.rotate(random * means.norm(dim=-1, keepdim=True))
        seen = see_counterfact(attended, heads, turned, chance, behind)
        self._merge(place, Counterfactual, Counterfactual.of(seen))

    def _merge(self, place: Place, stat: type[Stat], new: Stat) -> None:
        mine = self._held[place[0]].setdefault(place[1], {})
        mine[stat] = mine[stat].merge(new) if stat in mine else new

    def remarks(self) -> list[str]:
        """Each remark once, with the sites it holds for."""
        told = []
        for remark in dict.fromkeys(self._remarks.values()):
            sites = [str(site) for site, said in self._remarks.items() if said == remark]
            told.append(f"{sites[0]} to {sites[-1]}: {remark}" if len(sites) > 1 else f"{sites[0]}: {remark}")
        return told


def _shape(attended: Attended) -> tuple[int, ...]:
    """Heads, key heads and width."""
    if attended.query is None or attended.key is None:
        return () if attended.scores is None else (attended.scores.shape[1],)
    return attended.query.shape[1], attended.key.shape[1], attended.query.shape[3]


_BEFORE = "before rotary position, over all data"
_LEAVING_OUT = "at its position, over the other sequences"
