"""The laws of heads: scenes of attention, the records they fold into, and the table of attention measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from isoscope.data.batch import Batch
from isoscope.geometry import anatomy
from isoscope.geometry.attention import seen
from isoscope.measures.base import Measure
from isoscope.models.attention.rotary import Still
from isoscope.models.attention.tap import Attended
from isoscope.results.reading import Reading
from isoscope.run.observe.attend import (
    Means,
    Near,
    see_anatomy,
    see_controls,
    see_counterfact,
    see_heads,
    see_positions,
    settled,
)
from isoscope.stats.anatomy import DRAWS, Anatomy, Controlled, Controls, Dissected
from isoscope.stats.clouds import Clouds
from isoscope.stats.counterfactual import Counterfact, Counterfactual
from isoscope.stats.heads import Heads
from isoscope.stats.mass import Mass
from isoscope.stats.queries import HeadSums, Queries, QueryProducts
from isoscope.stats.rows import Rows


@dataclass(frozen=True, eq=False)
class Scene:
    """Attention over sequences as a tap shows it: query [b, h, t, e], keys [b, g, s, e], what hides a key.

    `mean` and `random` [h, e] are what the counterfactual takes away, `behind` the queries of that mean: they
    [h] belong to the whole stream, so that a part of it keeps them; and so does `key_mean` [g, e].
    """

    query: Tensor
    keys: Tensor
    counts: Tensor
    key: Tensor
    mask: Tensor | None = None
    causal: bool = False
    mean: Tensor | None = None
    random: Tensor | None = None
    behind: Tensor | None = None
    key_mean: Tensor | None = None
    units: Tensor | None = None

    def take(self, which: Iterable[int]) -> Scene:
        """Some of the sequences."""
        some = torch.tensor(list(which), dtype=torch.long)
        mask = self.mask if self.mask is None or len(self.mask) == 1 else self.mask[some]
        parts = {name: getattr(self, name)[some] for name in ("query", "keys", "counts", "key")}
        units = None if self.units is None else self.units[some]
        return replace(self, **parts, mask=mask, units=units)

    @property
    def attended(self) -> Attended:
        shown = Attended(
            query=self.query, key=self.keys, scale=self.scale, causal=self.causal, mask=self.mask,
            scores=None, unrotated=self.query, rotate=Still(self.query.shape[2]), softcap=None, cross=False,
            module="", path="sdpa", part=0, why="",
        )  # fmt: skip
        found = settled(shown, max(len(self.key), 1))
        assert isinstance(found, Attended)
        return found

    @property
    def scale(self) -> float:
        return float(self.query.shape[-1] ** -0.5)

    @cached_property
    def heads(self) -> Heads:
        """What the records of rows, queries and keys are folded of."""
        batch = Batch(self.query[:, 0], self.counts, self.key, units=self.units)
        return see_heads(self.attended, see_positions(self.attended, Near(batch, None), decoder=False))

    @cached_property
    def told(self) -> Heads:
        """The same, of attention that weighs its keys by a sigmoid, and tells so."""
        batch = Batch(self.query[:, 0], self.counts, self.key, units=self.units)
        attended = replace(self.attended, scores=self.scores, weights_of=torch.sigmoid)
        return see_heads(attended, see_positions(attended, Near(batch, None), decoder=False))

    @cached_property
    def counterfact(self) -> Counterfact:
        assert self.mean is not None and self.random is not None and self.behind is not None
        rotate, behind = Still(self.query.shape[2]), self.behind[:, None]
        where = self.heads.positions
        return see_counterfact(self.attended, where, rotate(self.mean), rotate(self.random), behind)

    @property
    def placed(self) -> tuple[Tensor, Tensor]:
        """Mean queries [1, h, t, e] and keys [1, g, s, e], which differ from place to place."""
        assert self.mean is not None and self.key_mean is not None
        *_, rows, width = self.query.shape
        random = torch.Generator().manual_seed(6)
        places = torch.randn(2, rows, width, generator=random, dtype=torch.float64) / 2
        return tuple(
            mean[None, :, None] + place
            for mean, place in zip((self.mean, self.key_mean), places, strict=True)
        )  # type: ignore[return-value]

    @cached_property
    def dissected(self) -> Dissected:
        assert self.behind is not None
        behind = self.behind[:, None]
        means = Means(*self.placed, behind, 2 * behind)
        return see_anatomy(self.attended, self.counterfact, self.heads.positions, means, known=False)

    @cached_property
    def draws(self) -> tuple[Tensor, ...]:
        """Vectors [h, e] that are as random as `random`."""
        assert self.random is not None
        return tuple((1 + number / 3) * self.random.roll(number, -1) for number in range(DRAWS))

    @cached_property
    def controlled(self) -> Controlled:
        rotate, made = Still(self.query.shape[2]), self.unbiased
        return see_controls(made.attended, made.dissected, [rotate(each) for each in self.draws])

    @cached_property
    def unbiased(self) -> Scene:
        """The scene with a mask that hides and adds nothing."""
        return replace(self, mask=None if self.mask is None else seen(self.mask))

    @cached_property
    def parts(self) -> tuple[Tensor, ...]:
        """The four parts of the scores: by hand."""
        copies = self.query.shape[1] // self.keys.shape[1]
        mean, key_mean = self.placed
        keys, key_mean = (each.repeat_interleave(copies, 1) for each in (self.keys, key_mean))
        added = self.mask if self.mask is not None and self.mask.dtype != torch.bool else None
        return anatomy.parts(self.query, keys, mean, key_mean, self.scale, added)

    def products(self, query: Tensor) -> Tensor:
        """scale · q kᵀ, [b, h, t, s]; `query` may be one a head, [h, e]."""
        copies = self.query.shape[1] // self.keys.shape[1]
        keys = self.keys.double().repeat_interleave(copies, 1)
        turned = query.double() if query.dim() == 4 else query.double()[None, :, None]
        return (self.scale * turned @ keys.mT).expand(*self.query.shape[:3], keys.shape[2])

    @cached_property
    def scores(self) -> Tensor:
        """The scores, −inf where a key is hidden: by hand."""
        found = self.products(self.query)
        found = torch.where(found.isfinite(), found, math.nan)  # −inf is for what is hidden
        if self.causal:
            found = found.masked_fill(torch.ones(found.shape[-2:]).triu(1).bool(), -math.inf)
        if self.mask is None:
            return found
        added = torch.where(self.mask, 0.0, -math.inf) if self.mask.dtype == torch.bool else self.mask
        return torch.where(added < -1e30, -math.inf, found + added)

    def without(self, vector: Tensor | None) -> Tensor:
        """The scores with those of a vector [h, e] taken away, hidden where they were."""
        assert vector is not None
        return torch.where(self.scores == -math.inf, -math.inf, self.scores - self.products(vector))


def scene(
    *,
    size: int = 9,
    heads: int = 2,
    groups: int = 2,
    rows: int = 5,
    width: int = 3,
    seed: int = 0,
    drift: float = 1.0,
    change: Callable[[Tensor, Tensor], None] | None = None,
    **given: Any,
) -> Scene:
    """A random scene with some queries that do not count; `change` works on queries and keys in place."""
    random = torch.Generator().manual_seed(seed)
    shapes = (size, heads, rows, width), (size, groups, rows, width)
    query, keys = (torch.randn(shape, generator=random, dtype=torch.float64) * 1.5 for shape in shapes)
    query += drift * torch.randn(heads, 1, width, generator=random, dtype=torch.float64)
    if change is not None:
        change(query, keys)
    counts = torch.rand(size, rows, generator=random) < 0.8
    counts[0, -1] = True
    made = Scene(query, keys, counts, torch.randint(0, 2**40, (size,), generator=random))
    made = replace(made, **given)
    known = Queries.of(made.heads)
    chance = torch.randn(heads, width, generator=random, dtype=torch.float64)
    means = {"mean": known.mean_query, "key_mean": known.mean_key, "behind": known.behind_mean}
    return replace(made, **means, random=chance)


def padded(size: int, rows: int, seed: int = 3) -> Tensor:
    """A mask [b, 1, t, t] that hides the end of every sequence but the first."""
    lengths = torch.randint(1, rows + 1, (size,), generator=torch.Generator().manual_seed(seed))
    lengths[0] = rows
    return (torch.arange(rows) < lengths[:, None])[:, None, None].expand(size, 1, rows, rows)


def left(size: int, rows: int) -> Tensor:
    """A causal mask [b, 1, t, t] with padding on the left: its rows there see no key."""
    real = torch.arange(rows) >= (torch.arange(size) % 3)[:, None]
    return torch.ones(rows, rows).tril().bool()[None, None] & real[:, None, None]


def _bias(size: int, rows: int) -> Tensor:
    """A bias by head with padding at the lowest number there is, as T5 has them."""
    random = torch.Generator().manual_seed(4)
    bias = torch.randn(1, 2, rows, rows, generator=random, dtype=torch.float64)
    return bias.expand(size, -1, -1, -1).masked_fill(~padded(size, rows), torch.finfo(torch.float64).min)


def _spoil_query(query: Tensor, keys: Tensor) -> None:
    query[1, 0, 2], query[2, :, 0, 1], query[4] = math.nan, math.inf, math.nan


def _spoil_key(query: Tensor, keys: Tensor) -> None:
    keys[0, :, 3], keys[3, 1, -1, 0] = math.nan, -math.inf


SCENES: dict[str, Scene] = {
    "no mask": scene(),
    "causal": scene(causal=True, seed=1),
    "padding": scene(mask=padded(9, 5), seed=2),
    "causal, padding on the left, rows that see no key": scene(mask=left(9, 5), seed=3),
    "bias and padding in one": scene(mask=_bias(9, 5), seed=4),
    "nothing visible at all": scene(mask=torch.zeros(1, 1, 5, 5, dtype=torch.bool), seed=5),
    "queries not finite": scene(change=_spoil_query, causal=True, seed=6),
    "keys not finite": scene(change=_spoil_key, causal=True, seed=7),
    "a head without a finite query": scene(change=lambda q, k: q[:, 1].fill_(math.nan), seed=8),
    "one head": scene(heads=1, groups=1, seed=9),
    "grouped key heads": scene(heads=6, groups=2, causal=True, seed=10),
    "one row, one key": scene(rows=1, seed=11),
    "one sequence": scene(size=1, seed=12),
    "two sequences": scene(size=2, causal=True, seed=13),
    "no query counts": scene(counts=torch.zeros(9, 5, dtype=torch.bool), seed=14),
    "many sequences": scene(size=40, rows=4, causal=True, seed=15),
    "a sink that takes nearly all": scene(change=lambda q, k: k[:, :, 0].mul_(8), causal=True, seed=16),
    "keys all the same": scene(change=lambda q, k: k.copy_(k[:1, :, :1].expand_as(k)), seed=17),
    "zero queries": scene(change=lambda q, k: q.zero_(), drift=0.0, seed=18),
}


@dataclass(frozen=True)
class HeadRecord:
    """A record of heads as it is folded, under a name of its own."""

    name: str
    kind: type
    fold: Callable[[Scene], Any]


RECORDS = (
    HeadRecord("rows", Rows, lambda made: Rows.of(made.heads)),
    HeadRecord("mass", Mass, lambda made: Mass.of(made.told)),
    HeadRecord("queries", Queries, lambda made: Queries.of(made.heads)),
    HeadRecord("sums of queries", HeadSums, lambda made: Queries.of(made.heads).query),
    HeadRecord("sums of key directions", HeadSums, lambda made: Queries.of(made.heads).key_unit),
    HeadRecord("products of queries", QueryProducts, lambda made: QueryProducts.of(made.heads)),
    HeadRecord("clouds", Clouds, lambda made: Clouds.of(made.heads)),
    HeadRecord("counterfactual", Counterfactual, lambda made: Counterfactual.of(made.counterfact)),
    HeadRecord("anatomy", Anatomy, lambda made: Anatomy.of(made.dissected)),
    HeadRecord("controls", Controls, lambda made: Controls.of(made.controlled)),
)


@dataclass(frozen=True)
class HeadKind:
    """What its definition takes of a scene; who has an interval ("all", "heads", "none"); a null or none."""

    takes: Callable[[Scene], tuple[Any, ...]]
    interval: str = "all"
    null: bool = True


def _rows(made: Scene) -> tuple[Tensor, ...]:
    return made.scores, made.counts


def _without(made: Scene) -> tuple[Tensor, ...]:
    return made.without(made.mean), made.counts


def _randomly(made: Scene) -> tuple[Tensor, ...]:
    return made.without(made.random), made.counts


def _split(made: Scene) -> tuple[Tensor, ...]:
    assert made.mean is not None
    return made.scores, made.products(made.mean), made.counts


def _parts(made: Scene) -> tuple[Any, ...]:
    return made.scores, made.parts, made.counts


def _scaled(made: Scene) -> tuple[Any, ...]:
    return _parts(made.unbiased)


def _drawn(made: Scene) -> tuple[Any, ...]:
    made = made.unbiased
    return made.scores, [made.products(each) for each in made.draws], made.counts


def _queries(made: Scene) -> tuple[Tensor, ...]:
    return made.query, made.counts


def _keys(made: Scene) -> tuple[Tensor, ...]:
    return made.keys, made.counts


def _both(made: Scene) -> tuple[Tensor, ...]:
    copies = made.query.shape[1] // made.keys.shape[1]
    return made.query, made.keys.repeat_interleave(copies, 1), made.counts, made.counts


KINDS: dict[str, HeadKind] = {
    "entropy": HeadKind(_rows),
    "normalised_entropy": HeadKind(_rows),
    "largest_weight": HeadKind(_rows, null=False),
    "effective_keys": HeadKind(_rows, null=False),
    "largest_score": HeadKind(_rows, "none", null=False),
    "score_std": HeadKind(_rows, null=False),
    "sink_mass": HeadKind(_rows),
    "sink_rate": HeadKind(_rows, "none"),
    "attended_distance": HeadKind(_rows, null=False),
    "attention_mass": HeadKind(lambda made: (torch.sigmoid(made.scores), *_rows(made)), null=False),
    "blind_rows": HeadKind(_rows, "none"),
    "not_finite_rows": HeadKind(_rows, "none"),
    "drift_share": HeadKind(_split),
    "cross_term": HeadKind(_split),
    "entropy_without_drift": HeadKind(_without),
    "normalised_entropy_without_drift": HeadKind(_without),
    "largest_weight_without_drift": HeadKind(_without, null=False),
    "sink_mass_without_drift": HeadKind(_without),
    "normalised_entropy_without_random": HeadKind(_randomly),
    "sink_mass_without_random": HeadKind(_randomly),
    "normalised_entropy_beside_first": HeadKind(lambda made: (*_rows(made), _without(made)[0])),
    "normalised_entropy_beside_first_without_drift": HeadKind(lambda made: (*_without(made), made.scores)),
    **{f"{part}_share": HeadKind(_parts) for part in ("position", "key", "query_position", "content")},
    "anatomy_cross_term": HeadKind(_parts),
    "attention_kind": HeadKind(_parts, null=False),
    "normalised_entropy_scaled_as_without_key": HeadKind(_scaled),
    "normalised_entropy_scaled_as_without_position_and_key": HeadKind(_scaled),
    "normalised_entropy_without_random_draws": HeadKind(_drawn),
    "random_draws_spread": HeadKind(_drawn, "none", null=False),
    **{
        f"{read}_{left}": HeadKind(_parts, null=read != "largest_weight")
        for read in ("normalised_entropy", "sink_mass", "largest_weight")
        for left in ("without_key", "without_position_and_key", "without_position", "of_content")
    },
    "query_drift": HeadKind(_queries, "heads"),
    "key_drift": HeadKind(_keys, "heads"),
    "query_relative_drift": HeadKind(_queries, "heads"),
    "key_relative_drift": HeadKind(_keys, "heads"),
    "query_anisotropy": HeadKind(_queries, "heads"),
    "key_anisotropy": HeadKind(_keys, "heads"),
    "query_key_cosine": HeadKind(_both),
    "query_key_product": HeadKind(_both),
    "joint_direction": HeadKind(_both, "none"),
}


def folded(measure: Measure, made: Scene) -> Any:
    """The record that a measure reads, of a scene."""
    (kind,) = measure.stats
    return next(record for record in RECORDS if record.kind is kind).fold(made)


def readings(measure: Measure, made: Scene) -> tuple[Reading, ...]:
    """The layer's reading, then each head's."""
    found = measure.read(folded(measure, made))
    assert isinstance(found, tuple)
    return found


def defined(measure: Measure, made: Scene) -> Tensor:
    """The naive definition, of every head."""
    found = measure.definition(*KINDS[measure.name].takes(made))
    assert isinstance(found, Tensor)
    return found
