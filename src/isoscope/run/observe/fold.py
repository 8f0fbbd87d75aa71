"""Fold what the taps show into records, site by site.

Layers and attention are folded in one pass; then, where it is asked for, attention is read once more
without its mean query, which is known only when the first pass is done. A block may hold several attentions:
modules of their own are heads of their own, side by side; one module that is called again (on chunks of a
sequence) has more rows of the same heads. The model runs under the autocast that it is called in; what is
measured of it never does, since scores would be products of 16 bits there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import reduce
from itertools import accumulate, count, pairwise
from typing import Any, cast

import torch
from torch import Tensor, nn

from isoscope.data.batch import Batch, joined_batch
from isoscope.kernels.attention.rows import chosen_backend
from isoscope.models.attention.rotary import Rotation, Still
from isoscope.models.attention.tap import Attended, AttentionMode, Learnt, attention_hooks
from isoscope.models.survey import Survey
from isoscope.models.tap import at_rest, tap
from isoscope.run.observe.attend import (
    AtPositions,
    Means,
    Near,
    WhichCount,
    adds_bias,
    means_at_positions,
    no_counterfact,
    numbered,
    random_directions,
    same_attention,
    see_anatomy,
    see_controls,
    see_counterfact,
    see_heads,
    see_positions,
    settled,
)
from isoscope.run.observe.layers import Layers
from isoscope.run.observe.memory import Plan
from isoscope.run.observe.together import AT_ONCE, ON_CPU, Together
from isoscope.sites import ATTENTION, Site
from isoscope.stats.anatomy import DRAWS, Anatomy, Controls
from isoscope.stats.base import Stat, unstacked
from isoscope.stats.clouds import Clouds
from isoscope.stats.counterfactual import Counterfact, Counterfactual
from isoscope.stats.heads import Positions
from isoscope.stats.mass import Mass
from isoscope.stats.places import hash_of_inputs
from isoscope.stats.queries import Queries, QueryProducts
from isoscope.stats.rows import Rows

AGAIN: tuple[type[Stat], ...] = (Counterfactual, Anatomy, Controls)  # of attention that is read once more
OF_ATTENTION: tuple[type[Stat], ...] = (Rows, Mass, Queries, QueryProducts, *AGAIN)
SEQUENCES = 64  # that the counterfactual is read on
AT_POSITIONS = 2**30  # bytes at most of sums at every position
TOKENS = 2**14  # of small batches that a GPU takes at once
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


def joined(batches: Iterable[Batch], room: Callable[[Batch], int], batch_axis: int = 0) -> Iterator[Batch]:
    """Neighbouring batches of one shape on a GPU as batches of as many sequences as there is `room` for.

    A GPU takes as long for one sequence as for a few, and calls of one shape are learnt once. Batches whose
    inputs do not all number the sequences on their first axis stay as they are.
    """
    held: Batch | None = None
    for batch in batches:
        both = None if held is None or len(held) >= room(batch) else joined_batch(held, batch)
        if held is not None and both is None:
            yield held
        held = batch if both is None else both
        most = room(batch)
        if both is not None and len(both) > most:
            yield both.take(torch.arange(most), batch_axis)
            held = both.take(torch.arange(most, len(both)), batch_axis)
    if held is not None:
        yield held


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
            lambda sites, stat, new: self._merge([(site, "") for site in sites], stat, new),
            covariance_rows,
        )
        self._attentions = Together[Place](self._fold_attention)
        self._without = Together[Place](self._fold_counterfactual)
        self._batch: Batch | None = None  # that is running
        self._attached: tuple[nn.Module, AttentionMode | None] | None = None
        # records by the places that were folded at once: of several, they have an axis of places
        self._records: dict[tuple[tuple[Place, ...], type[Stat]], Stat] = {}
        self._sites: dict[Site, list[str]] = {site: [] for site in sites}  # and the modules that attend there
        self.attends = any(site.kind in ATTENTION for site in sites) and bool(attention)
        self.counterfactual = self.attends and any(stat in attention for stat in AGAIN)
        self._controls = self.counterfactual and Controls in attention
        self._dissects = self._controls or (self.counterfactual and Anatomy in attention)
        wanted: tuple[type[Stat], ...] = (*attention, Queries) if self.counterfactual else attention
        wanted = (*wanted, Clouds) if pictures and Queries in wanted else wanted
        self._kinds = tuple(dict.fromkeys(stat for stat in wanted if stat not in AGAIN))
        self._learnt = Learnt() if learnt is None else learnt
        self._largest = 0  # sequences of a batch
        self._fitting: int | None = None  # tokens that fit into half of what a GPU has left, once known
        self._near: tuple[Batch, Near] | None = None  # the batch that is running, and where attention is
        self._shapes: dict[Site, tuple[int, ...]] = {}
        self._turned: dict[Place, str] = {}
        self._queries: dict[Place, Queries] = {}  # once the first pass is done
        self._means: dict[Place, tuple[Tensor, Tensor, Tensor]] = {}
        self._forms: dict[Place, str] = {}  # which means take the scores of a place apart
        self._biased: dict[Place, bool] = {}  # whether more than queries and keys decides there
        self._at: dict[Place, tuple[AtPositions, AtPositions]] = {}  # of queries and keys
        self._numbers = count()
        self._waiting: dict[int, tuple[Means, Positions]] = {}  # by number, until rows are read
        self._remarks: dict[Site, str] = {}
        self.facts: dict[str, object] = {}
        self.inputs = 0

    @property
    def learnt(self) -> Learnt:
        """What earlier batches told of how attention is laid out."""
        return self._learnt

    @property
    def records(self) -> dict[Site, dict[type[Stat], Stat]]:
        """The records of every site, the heads of all its attentions side by side."""
        kinds = dict.fromkeys(stat for _, stat in self._records)
        of_kind = {stat: self._of_places(stat) for stat in kinds}
        found: dict[Site, dict[type[Stat], Stat]] = {site: {} for site in self._sites}
        for site, modules in self._sites.items():
            places = [(site, module) for module in modules or [""]]
            for stat, held in of_kind.items():
                if all(place in held for place in places):
                    each: list[Any] = [held[place] for place in places]
                    found[site][stat] = reduce(lambda one, other: one.beside_heads(other), each)
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

    def room(self, batch: Batch) -> int:
        """How many sequences of the length of these are run at once: on a GPU more than a small batch has.

        Until a batch was run, so that it is known what one takes, as many as are given.
        """
        fed = batch.tokens(batch_axis=self.found.input_axis)
        if fed is None or self._fitting is None:
            return len(batch)
        return max(1, min(TOKENS, self._fitting) // fed.numel()) * len(batch)

    def fold(self, module: nn.Module, batch: Batch) -> None:
        """One batch: every layer and, where it is asked for, every attention."""
        if self._attached is None:
            with self.attached(module):
                self.fold(module, batch)
            return
        self._largest, mode = max(self._largest, len(batch)), self._attached[1]
        self.inputs = (self.inputs + hash_of_inputs(batch.keys, batch.units)) % 2**63
        self._batch = batch
        try:
            with at_rest(module), nullcontext() if mode is None else mode:
                batch.call(module)
        finally:
            self._batch = None
        if mode is not None:
            mode.refuse_hidden(module)
        self.finish()
        fed = batch.tokens(batch_axis=self.found.input_axis)
        if self._fitting is None and fed is not None and fed.is_cuda:
            self._fitting = fed.numel() * _fits(fed.device)

    def add_layer(self, site: Site, seen: Tensor, batch: Batch) -> None:
        """Fold what one layer shows of a batch."""
        if site not in self._sites:
            return
        with torch._C.DisableTorchFunction(), _apart(seen):  # the mode that looks for attention may be on
            remark = self._layers.add(site, seen.detach(), batch)
        if remark:
            self._remarks[site] = remark

    def add_attention(self, site: Site, attended: Attended, batch: Batch) -> None:
        """Fold one attention of a batch."""
        if site in self._sites:
            with _apart(_shown(attended)):
                self._add_attention(site, attended, batch)

    def finish(self) -> None:
        """The batch is done."""
        self._layers.finish()
        self._attentions.flush()

    def fold_counterfactual(self, module: nn.Module, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The same attention again, over these batches, with each head's mean query taken away.

        Gives every batch that is done.
        """
        held = tuple(joined(batches, lambda _: self._largest, self.found.input_axis))
        self._queries = cast("dict[Place, Queries]", self._of_places(Queries))
        positions: dict[Place, AtPositions] = {}
        alone = {place for place, how in self._turned.items() if how == _LEAVING_OUT}
        rotary = any(form == _TURNED for form in self._forms.values())
        for place, form in self._forms.items():
            if rotary and form == _AT_POSITIONS and place not in alone and not self._biased[place]:
                self._forms[place] = _ONE

        def gather(place: Place, attended: Attended, batch: Batch) -> None:
            if place in alone:
                assert attended.query is not None
                new = AtPositions.of(attended.query, self._counted(place[0], attended, batch).queries)
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
        read = {place for many, stat in self._records if stat is Counterfactual for place in many}
        said = {how for place, how in self._turned.items() if place in read}
        self.facts["counterfactual"] = {
            "sequences": sum(map(len, held)),
            "mean query": ", ".join(sorted(said)) or "cannot be had",
        }
        if self._dissects:
            read = {place for many, stat in self._records if stat is Anatomy for place in many}
            forms = {self._forms[place] for place in read}
            self.facts["anatomy"] = {"means": ", ".join(sorted(forms)) or "cannot be had"}

    @contextmanager
    def _attending(
        self, module: nn.Module, receive: Callable[[Place, Attended, Batch], None]
    ) -> Iterator[Callable[[Batch], None]]:
        """While inside, what is given runs a batch, every attention of which goes to `receive`."""

        def attention(site: Site, attended: Attended) -> None:
            batch = self._batch
            if batch is None or site not in self._sites:
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
            self._without.flush()

        found = self.found
        hooks = attention_hooks(module, found.blocks, attention, takes=found.takes, learnt=self._learnt)
        with hooks as mode:
            yield attend

    def _counted(self, site: Site, attended: Attended, batch: Batch) -> WhichCount:
        some = _shown(attended)
        if self._near is None or self._near[0] is not batch:
            self._near = batch, Near(batch, None if some is None else some.device)
        decoder = Site("layer", site.layer) in self.found.decoder
        return see_positions(attended, self._near[1], decoder=decoder)

    def _add_attention(self, site: Site, given: Attended, batch: Batch) -> None:
        attended = settled(given, len(batch))
        if isinstance(attended, str):
            self._remarks[site] = attended
            return
        if self._shapes.setdefault(site, _shape(attended)) != _shape(attended):
            self._remarks[site] = "a second attention of the block, with heads of another shape, is left out"
            return
        counted = self._counted(site, attended, batch)
        if counted.remark or attended.why:
            self._remarks[site] = "; ".join(filter(None, (counted.remark, attended.why)))
        place = site, attended.module
        if attended.module not in self._sites[site]:
            self._sites[site].append(attended.module)
        shown = {"query": attended.query, "key": attended.key}
        if attended.unrotated is not attended.query:
            shown["unrotated"] = attended.unrotated
        if attended.unrotated_key is not attended.key:
            shown["unrotated_key"] = attended.unrotated_key
        tensors = {name: each for name, each in shown.items() if each is not None}
        alike = same_attention(attended, counted)
        self._attentions.add(place, tensors, alike, (attended, counted), self._room(tensors, alike))
        why = no_counterfact(attended)
        self._turned[place] = (
            f"none: {why}" if why else _LEAVING_OUT if attended.unrotated is None else _BEFORE
        )
        if self._dissects and not why:
            self._gather_positions(place, attended, counted)
        if "attention rows" not in self.facts and attended.query is not None and attended.key is not None:
            name, why = chosen_backend(attended.query, attended.key, mask=attended.mask)
            self.facts["attention rows"] = f"{name}: {why}"

    def _gather_positions(self, place: Place, attended: Attended, counted: WhichCount) -> None:
        """Settle which means take the scores apart; where they may be means at each position, sum them up."""
        if place not in self._forms:  # what scales or centres queries alone is no rotary position
            turned = all(isinstance(each, Rotation) for each in (attended.rotate, attended.rotate_key))
            self._biased[place] = attended.weights_of is not None or adds_bias(attended)
            self._forms[place] = _TURNED if turned else _AT_POSITIONS
        if self._forms[place] != _AT_POSITIONS:
            return
        assert attended.query is not None
        assert attended.key is not None
        number, keys = numbered(attended, counted)
        new = AtPositions.of(attended.query, counted.queries, number), AtPositions.of(attended.key, keys)
        if place in self._at:
            new = self._at[place][0].merge(new[0]), self._at[place][1].merge(new[1])
        self._at[place] = new
        if sum(each.bytes for both in self._at.values() for each in both) > AT_POSITIONS:
            self._at.clear()
            self._forms = {
                each: _TOO_LARGE if form == _AT_POSITIONS else form for each, form in self._forms.items()
            }

    def _add_counterfactual(
        self, place: Place, attended: Attended, batch: Batch, at: AtPositions | None
    ) -> None:
        counted = self._counted(place[0], attended, batch)
        means, random, behind = self._directions(place)
        form = self._forms.get(place)
        number = next(self._numbers)
        if form == _AT_POSITIONS and place in self._at:
            self._waiting[number] = means_at_positions(attended, counted, self._at[place])
        if at is not None:
            query = attended.query
            assert query is not None
            turned, behind, where = at.without(query, counted.queries, len(query) // len(batch))
            chance = random[:, None, :] * turned.norm(dim=-1, keepdim=True)
            seen = see_counterfact(attended, where, turned, chance, behind)
            self._merge([place], Counterfactual, Counterfactual.of(seen))
            self._dissect(place, attended, seen, number)
        elif attended.rotate is not None and attended.query is not None and attended.key is not None:
            tensors = {
                "query": attended.query, "key": attended.key, "means": attended.rotate(means),
                "random": attended.rotate(random * means.norm(dim=-1, keepdim=True)),
                "behind": behind[None, :, None], "number": torch.tensor([number]),
            }  # fmt: skip
            if form == _TURNED and attended.rotate_key is not None:
                key = self._queries[place].unrotated_key
                copies = attended.query.shape[1] // attended.key.shape[1]
                tensors["key_means"] = attended.rotate_key(key.mean)
                tensors["behind_key"] = key.effective_count().repeat_interleave(copies)[None, :, None]
            alike = None if self._controls else same_attention(attended, counted)
            self._without.add(place, tensors, alike, (attended, counted), self._room(tensors, alike))

    def _directions(self, place: Place) -> tuple[Tensor, Tensor, Tensor]:
        """The mean query of each head, a random direction, and how many queries the mean is of."""
        if place not in self._means:
            known = self._queries[place]
            random = random_directions(known.mean_query.shape, seed=place[0].layer or 0)
            self._means[place] = known.mean_query, random.to(known.mean_query), known.behind_mean
        return self._means[place]

    def _room(self, tensors: Mapping[str, Tensor], alike: object) -> int:
        """How many attentions like this one are folded at once."""
        if alike is None:
            return 1
        most = AT_ONCE if any(each.is_cuda for each in tensors.values()) else ON_CPU
        return min(len(self._sites), most // max(1, sum(each.nbytes for each in tensors.values())))

    def _fold_attention(
        self, places: list[Place], tensors: dict[str, Tensor], shown: tuple[Attended, WhichCount]
    ) -> None:
        attended, counted = shown
        if len(places) > 1:
            query, key = tensors["query"], tensors["key"]
            unrotated = None if attended.unrotated is None else tensors.get("unrotated", query)
            before = None if attended.unrotated_key is None else tensors.get("unrotated_key", key)
            attended = replace(attended, query=query, key=key, unrotated=unrotated, unrotated_key=before)
        heads = see_heads(attended, counted)
        for stat in self._kinds:
            if stat is not Mass or heads.mass is not None:
                self._merge(places, stat, stat.of(heads))

    def _fold_counterfactual(
        self, places: list[Place], tensors: dict[str, Tensor], shown: tuple[Attended, WhichCount]
    ) -> None:
        attended = replace(shown[0], query=tensors["query"], key=tensors["key"], unrotated=None)
        turned = (tensors[name] for name in ("means", "random", "behind"))
        seen = see_counterfact(attended, shown[1].queries, *turned)
        self._merge(places, Counterfactual, Counterfactual.of(seen))
        if "key_means" in tensors:
            query, key, behind, behind_key = (
                tensors[name] for name in ("means", "key_means", "behind", "behind_key")
            )
            known = not any(self._biased[place] for place in places)
            means = Means(query, key, behind, behind_key)
            self._keep_anatomy(places, attended, seen, seen.positions, means, known=known)
            return
        for at, (place, number) in enumerate(zip(places, tensors["number"].flatten().tolist(), strict=True)):
            if len(places) == 1:
                self._dissect(place, attended, seen, number)
            else:
                one = replace(attended, query=tensors["query"][at], key=tensors["key"][at])
                self._dissect(place, one, seen.of_site(at), number)

    def _dissect(self, place: Place, attended: Attended, seen: Counterfact, number: int) -> None:
        """Take the scores of one place apart, where its means are not turned."""
        form = self._forms.get(place)
        if form == _AT_POSITIONS and number in self._waiting:
            means, where = self._waiting.pop(number)
            self._keep_anatomy([place], attended, seen, where, means, known=False)
        elif form == _ONE:
            endless = seen.behind.new_full((), torch.inf)
            assert attended.query is not None
            mean = self._means[place][0][None, :, None].expand(attended.query.shape[-4:])
            means = Means(mean, None, seen.behind, endless.expand_as(seen.behind))
            self._keep_anatomy([place], attended, seen, seen.positions, means, known=True)

    def _keep_anatomy(
        self,
        places: list[Place],
        attended: Attended,
        seen: Counterfact,
        where: Positions,
        means: Means,
        *,
        known: bool,
    ) -> None:
        found = see_anatomy(attended, seen, where, means, known=known)
        self._merge(places, Anatomy, Anatomy.of(found))
        whole = attended.query is not None and len(attended.query) == len(where.key)
        if self._controls and whole and not self._biased[places[0]]:
            length = means.query.norm(dim=-1, keepdim=True)
            shape = self._means[places[0]][0].shape
            seeds = range(1, DRAWS + 1)
            random = [
                random_directions(shape, seed=1000 * each + (places[0][0].layer or 0)) for each in seeds
            ]
            turn = attended.rotate or Still(means.query.shape[-2])
            turned = [turn(each.to(length)) * length for each in random]
            self._merge(places, Controls, Controls.of(see_controls(attended, found, turned)))

    def _of_places(self, stat: type[Stat]) -> dict[Place, Stat]:
        """The records of one kind, by place."""
        held: dict[Place, Stat] = {}
        for (places, kind), record in self._records.items():
            if kind is stat:
                apart = unstacked(record, len(places)) if len(places) > 1 else [record]
                for place, new in zip(places, apart, strict=True):
                    held[place] = held[place].merge(new) if place in held else new
        return held

    def _merge(self, places: Sequence[Place], stat: type[Stat], new: Stat) -> None:
        kind = tuple(places), stat
        self._records[kind] = self._records[kind].merge(new) if kind in self._records else new

    def remarks(self) -> list[str]:
        """Each remark once, with the sites it holds for."""
        told = []
        for remark in dict.fromkeys(self._remarks.values()):
            sites = [str(site) for site, said in self._remarks.items() if said == remark]
            told.append(f"{sites[0]} to {sites[-1]}: {remark}" if len(sites) > 1 else f"{sites[0]}: {remark}")
        return told


def _fits(device: torch.device) -> int:
    """How often what was needed at once until now fits into half of the memory that is free."""
    used = torch.cuda.memory_allocated(device)
    free = torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device) - used
    return free // 2 // max(1, torch.cuda.max_memory_allocated(device) - used)


def _shown(attended: Attended) -> Tensor | None:
    return attended.query if attended.query is not None else attended.scores


def _apart(some: Tensor | None) -> AbstractContextManager[Any]:
    """Outside autocast on the device of this tensor, whatever is on."""
    kind = "cpu" if some is None else some.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


def _shape(attended: Attended) -> tuple[int, ...]:
    """Heads, key heads and width."""
    if attended.query is None or attended.key is None:
        return () if attended.scores is None else (attended.scores.shape[1],)
    return attended.query.shape[1], attended.key.shape[1], attended.query.shape[3]


_BEFORE = "before rotary position, over all data"
_LEAVING_OUT = "at its position, over the other sequences"
_TURNED = "means before rotary position, over all data"
_ONE = "one mean for all positions, which leaves position no part"
_AT_POSITIONS = "means at each position, over the other sequences"
_TOO_LARGE = "none: means at each position take too much memory"
