"""Fold what the taps show into records, site by site.

Layers and attention are folded in one pass; then, where it is asked for, attention is read once more
without its mean query, which is known only when the first pass is done. A block may hold several attentions:
modules of their own are heads of their own, side by side; one module that is called again (on chunks of a
sequence) has more rows of the same heads. The model runs under the autocast that it is called in; what is
measured of it never does, since scores would be products of 16 bits there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import reduce
from itertools import accumulate, groupby, pairwise
from typing import Any, cast

import torch
from torch import Tensor, nn

from isoscope.data.batch import Batch, joined_batch
from isoscope.kernels.attention.rows import chosen_backend
from isoscope.models.attention.tap import Attended, AttentionMode, Learnt, attention_hooks
from isoscope.models.survey import Survey
from isoscope.models.tap import at_rest, tap
from isoscope.run.observe.attend import (
    AtPositions,
    Near,
    no_counterfact,
    random_directions,
    see_counterfact,
    see_heads,
    settled,
)
from isoscope.run.observe.layers import Layers
from isoscope.run.observe.memory import Plan
from isoscope.sites import Site
from isoscope.stats.base import Stat, shapes, unstacked
from isoscope.stats.clouds import Clouds
from isoscope.stats.counterfactual import Counterfactual
from isoscope.stats.heads import Heads
from isoscope.stats.mass import Mass
from isoscope.stats.queries import Queries, QueryProducts
from isoscope.stats.rows import Rows

OF_ATTENTION: tuple[type[Stat], ...] = (Rows, Mass, Queries, QueryProducts, Counterfactual)
SEQUENCES = 64  # that the counterfactual is read on
Place = tuple[Site, str]  # a site, and the module that attends there
Held = dict[Site, dict[str, dict[type[Stat], Stat]]]


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


def joined(batches: Sequence[Batch], most: int) -> list[Batch]:
    """Neighbouring batches of one shape on a GPU as batches of at most `most` sequences.

    A GPU takes as long for one sequence as for a few. Batches whose inputs do not all number the sequences on
    their first axis stay as they are.
    """
    out: list[Batch] = []
    for batch in batches:
        if out and len(out[-1]) + len(batch) <= most and (both := joined_batch(out[-1], batch)) is not None:
            out[-1] = both
        else:
            out.append(batch)
    return out


class Folder:
    """Records of the sites chosen. `attention` are the kinds of record that are kept of attention.

    Covariances are made of the share `covariance_rows` of the vectors; `learnt` is what an earlier folder
    found out of the same model; `pictures` samples queries and keys for them. `fold` runs a batch; where
    somebody else runs it, `add_layer` and `add_attention` take what its taps show, and `finish` ends it.
    """

    def __init__(
        self,
        sites: tuple[Site, ...],
        kept: Plan,
        attention: tuple[type[Stat], ...],
        found: Survey,
        covariance_rows: float = 1.0,
        learnt: Learnt | None = None,
        pictures: bool = True,
    ) -> None:
        self.kept, self.found = kept, found
        self._layers = Layers(
            kept,
            found,
            lambda site, stat, new: self._merge((site, ""), stat, new),
            lambda sites, stat, new: self._merge_all([(site, "") for site in sites], stat, new),
            covariance_rows,
        )
        # what each place has shown of the batch that is running, to be put together when it is done
        self._gathered: dict[type[Stat], list[tuple[Place, Any]]] = {}
        self._batch: Batch | None = None  # that is running
        self._attached: tuple[nn.Module, AttentionMode | None] | None = None
        self._together: dict[tuple[tuple[Place, ...], type[Stat]], Stat] = {}
        self._held: Held = {site: {} for site in sites}
        self.attends = any("attention" in site.kind for site in sites) and bool(attention)
        self.counterfactual = self.attends and Counterfactual in attention
        wanted: tuple[type[Stat], ...] = (*attention, Queries) if self.counterfactual else attention
        wanted = (*wanted, Clouds) if pictures and Queries in wanted else wanted
        self._kinds = tuple(dict.fromkeys(stat for stat in wanted if stat is not Counterfactual))
        self._learnt = Learnt() if learnt is None else learnt
        self._largest = 0  # sequences of a batch
        self._near: tuple[Batch, Near] | None = None  # the batch that is running, and where attention is
        self._shapes: dict[Site, tuple[int, ...]] = {}
        self._turned: dict[Place, str] = {}
        self._queries: dict[Place, Queries] = {}  # once the first pass is done
        self._remarks: dict[Site, str] = {}
        self.facts: dict[str, object] = {}

    @property
    def learnt(self) -> Learnt:
        """What earlier batches told of how attention is laid out."""
        return self._learnt

    @property
    def records(self) -> dict[Site, dict[type[Stat], Stat]]:
        """The records of every site, the heads of all its attentions side by side."""
        found: dict[Site, dict[type[Stat], Stat]] = {}
        held = {
            site: {module: dict(mine) for module, mine in places.items()}
            for site, places in self._held.items()
        }
        for (many, stat), record in self._together.items():
            for place, new in zip(many, unstacked(record, len(many)), strict=True):
                _merge_into(held, place, stat, new)
        for site, places in held.items():
            each: list[Any] = list(places.values())
            kinds = [stat for stat in each[0] if all(stat in records for records in each)] if each else []
            found[site] = {
                stat: reduce(lambda one, other: one.beside_heads(other), [records[stat] for records in each])
                for stat in kinds
            }
        return found

    @contextmanager
    def attached(self, module: nn.Module) -> Iterator[None]:
        """While inside, the hooks of both taps are on `module`, and stay there from batch to batch."""

        def layer(site: Site, seen: Tensor) -> None:
            if self._batch is not None:
                self.add_layer(site, seen, self._batch)

        def attention(site: Site, attended: Attended) -> None:
            if self._batch is not None:
                self.add_attention(site, attended, self._batch)

        found, mode = self.found, None
        with ExitStack() as taps:
            taps.enter_context(tap(module, found.blocks, layer, gives=found.gives, takes=found.takes))
            if self.attends:
                hooks = attention_hooks(
                    module,
                    found.blocks,
                    attention,
                    takes=found.takes,
                    learnt=self._learnt,
                    unrotated=Queries in self._kinds,
                )
                mode = taps.enter_context(hooks)
            self._attached = module, mode
            try:
                yield
            finally:
                self._attached = None

    def fold(self, module: nn.Module, batch: Batch) -> None:
        """One batch: every layer and, where it is asked for, every attention."""
        if self._attached is None:
            with self.attached(module):
                self.fold(module, batch)
            return
        self._largest, mode = max(self._largest, len(batch)), self._attached[1]
        self._batch = batch
        try:
            with at_rest(module), nullcontext() if mode is None else mode:
                batch.call(module)
        finally:
            self._batch = None
        if mode is not None:
            mode.refuse_hidden(module)
        self.finish()

    def add_layer(self, site: Site, seen: Tensor, batch: Batch) -> None:
        """Fold what one layer shows of a batch."""
        if site not in self._held:
            return
        with torch._C.DisableTorchFunction(), _apart(seen):  # the mode that looks for attention may be on
            remark = self._layers.add(site, seen.detach(), batch)
        if remark:
            self._remarks[site] = remark

    def add_attention(self, site: Site, attended: Attended, batch: Batch) -> None:
        """Fold one attention of a batch."""
        if site in self._held:
            with _apart(_shown(attended)):
                self._add_attention(site, attended, batch)

    def finish(self) -> None:
        """The batch is done."""
        self._layers.finish()
        self._put_together()

    def _put_together(self) -> None:
        """Make records of what the places of a batch have shown, those of one shape as one."""
        for stat, found in self._gathered.items():
            for _, some in groupby(sorted(found, key=_shapes), key=_shapes):
                places, alike = zip(*some, strict=True)
                self._merge_all(places, stat, cast("Any", stat).of_gathered(alike))
        self._gathered.clear()

    def fold_counterfactual(self, module: nn.Module, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The same attention again, over these batches, with each head's mean query taken away.

        Gives every batch that is done.
        """
        held = tuple(joined(list(batches), self._largest))
        self._queries = cast("dict[Place, Queries]", self._of_places(Queries))
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
            with self._attending(module, receive) as attend:
                for batch in held:
                    attend(batch)
                    if receive is take_away:
                        yield batch
        read = {place for many, stat in self._together if stat is Counterfactual for place in many}
        said = {how for place, how in self._turned.items() if place in read}
        self.facts["counterfactual"] = {
            "sequences": sum(map(len, held)),
            "mean query": ", ".join(sorted(said)) or "cannot be had",
        }

    @contextmanager
    def _attending(
        self, module: nn.Module, receive: Callable[[Place, Attended, Batch], None]
    ) -> Iterator[Callable[[Batch], None]]:
        """While inside, what is given runs a batch, every attention of which goes to `receive`."""

        def attention(site: Site, attended: Attended) -> None:
            batch = self._batch
            if batch is None or site not in self._held:
                return
            with _apart(_shown(attended)):
                there = settled(attended, len(batch))
                if not isinstance(there, str) and self._shapes.get(site) == _shape(there):
                    receive((site, there.module), there, batch)

        def attend(batch: Batch) -> None:
            self._batch = batch
            try:
                with at_rest(module), mode:
                    batch.call(module)
            finally:
                self._batch = None
            self._put_together()

        found = self.found
        hooks = attention_hooks(module, found.blocks, attention, takes=found.takes, learnt=self._learnt)
        with hooks as mode:
            yield attend

    def _heads(self, site: Site, attended: Attended, batch: Batch) -> tuple[Heads, str]:
        some = _shown(attended)
        if self._near is None or self._near[0] is not batch:
            self._near = batch, Near(batch, None if some is None else some.device)
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
        self._held[site].setdefault(attended.module, {})
        for stat in self._kinds:
            if hasattr(stat, "gather"):
                self._gathered.setdefault(stat, []).append((place, stat.gather(heads)))
            elif stat is not Mass or heads.mass is not None:
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
        site = place[0]
        heads, _ = self._heads(site, attended, batch)
        known = self._queries[place]
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
        self._gathered.setdefault(Counterfactual, []).append((place, Counterfactual.gather(seen)))

    def _of_places(self, stat: type[Stat]) -> dict[Place, Stat]:
        """The records of one kind, by place."""
        held: dict[Place, Stat] = {}
        for (many, kind), record in self._together.items():
            for place, new in zip(many, unstacked(record, len(many)), strict=True) if kind is stat else ():
                held[place] = held[place].merge(new) if place in held else new
        return held

    def _merge(self, place: Place, stat: type[Stat], new: Stat) -> None:
        _merge_into(self._held, place, stat, new)

    def _merge_all(self, places: Sequence[Place], stat: type[Stat], new: Stat) -> None:
        """A record of many places at once, [k, …]: it stays so until it is read, to be merged in one go."""
        kind = tuple(places), stat
        self._together[kind] = self._together[kind].merge(new) if kind in self._together else new

    def remarks(self) -> list[str]:
        """Each remark once, with the sites it holds for."""
        told = []
        for remark in dict.fromkeys(self._remarks.values()):
            sites = [str(site) for site, said in self._remarks.items() if said == remark]
            told.append(f"{sites[0]} to {sites[-1]}: {remark}" if len(sites) > 1 else f"{sites[0]}: {remark}")
        return told


def _shown(attended: Attended) -> Tensor | None:
    return attended.query if attended.query is not None else attended.scores


def _apart(some: Tensor | None) -> AbstractContextManager[Any]:
    """Outside autocast on the device of this tensor, whatever is on."""
    kind = "cpu" if some is None else some.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


def _merge_into(held: Held, place: Place, stat: type[Stat], new: Stat) -> None:
    mine = held[place[0]].setdefault(place[1], {})
    mine[stat] = mine[stat].merge(new) if stat in mine else new


def _shapes(gathered: tuple[Place, Any]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, shapes(gathered[1])))


def _shape(attended: Attended) -> tuple[int, ...]:
    """Heads, key heads and width."""
    if attended.query is None or attended.key is None:
        return () if attended.scores is None else (attended.scores.shape[1],)
    return attended.query.shape[1], attended.key.shape[1], attended.query.shape[3]


_BEFORE = "before rotary position, over all data"
_LEAVING_OUT = "at its position, over the other sequences"
