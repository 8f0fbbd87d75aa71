"""Attention rows in torch, on any device, strip by strip: no score outlives its strip.

A strip is a few queries with all keys that they see: a row is there as a whole, and nothing is rescaled. On a
CPU the scores and weights of a strip stay in its cache, where all passes over them together take less time
than the product that makes them. Scores are in base 2 (scale·log₂e goes into the queries: on a CPU exp2 takes
a quarter of the time of exp) and relative to their mean over the visible keys: weights then add up to one or
more per key, so that no sum is lost. A row that rises far above its mean is made again, relative to its
largest score. Keys that no query of a strip sees are not multiplied; only columns that some of its queries
see and some do not are masked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from isoscope.geometry.attention import AttentionRows, hidden_at_most
from isoscope.kernels.attention.inputs import STATISTICS, AttentionInputs, Strip, compact, pieces

_SCORES = {"cpu": 1 << 19, "cuda": 1 << 23}  # worked on together (a thread): 2 MiB, of which two are held
_QUERIES = {"cpu": (32, 128), "cuda": (32, 2048)}  # of a strip: at least, and at most where order hides keys
_HIGH = 48.0  # bits above the mean from which on a row is taken relative to its largest score
_NOWHERE = -3e38  # the score of what is hidden there: finite, so that 0·score is 0
_LOG2E, _LN2 = math.log2(math.e), math.log(2)
SHIFT_VARIANCE = "shift_variance"  # may be wanted of a shift
_WEIGHED = frozenset(STATISTICS) - {"score_variance", "visible"}  # what needs weights


class Sums(NamedTuple):
    """Of every row, [b, h, t]; weights are 2^(score − level)."""

    mean: Tensor  # of the scores
    level: Tensor
    top: Tensor  # the largest score − level
    weight: Tensor  # Σ w
    energy: Tensor  # Σ w·(score − level)
    square: Tensor  # √Σ w²
    travel: Tensor  # Σ w·|i' − j|
    first: Tensor  # the weight of the first key
    scatter: Tensor  # √Σ (score − mean)²
    shift: Tensor  # Σ (a − its mean)² of the scores a that were subtracted


class Variant(NamedTuple):
    """What a shift of the queries does: rows of q − shift on the same keys, and how its own scores vary."""

    rows: AttentionRows
    shift_variance: Tensor  # population variance over the visible keys of scale·shift·k alone, [b, h, t]


def chunked(inputs: AttentionInputs) -> AttentionRows:
    """The rows of `inputs`, in float32 (float64 for float64). Twin: `geometry.attention.attention_rows`."""
    return chunked_variants(inputs, (), ())[0]


def chunked_variants(
    inputs: AttentionInputs, shifts: Sequence[Tensor], wanted: Sequence[Collection[str]]
) -> tuple[AttentionRows, tuple[Variant, ...]]:
    """The rows of `inputs`, and of the same with each of `shifts` [b, h, t, e] subtracted from the queries.

    `wanted` names the statistics of each shift. One product gives the scores of all shifts that are the same
    at every position; any other takes a product of its own.
    """
    b, h, t, s = inputs.shape
    device, dtype = inputs.source.device, inputs.dtype
    asked = [inputs.wanted, *map(frozenset, wanted)]
    sums = [torch.zeros((len(Sums._fields), b, h, t), dtype=dtype, device=device) for _ in asked]
    count = torch.zeros((b, h, t), dtype=dtype, device=device)
    first = inputs.first_keys() if s and any("first_key" in names for names in asked) else None
    steady = [_steady(shift) for shift in shifts]
    cut = _cut(inputs)
    spare = [torch.empty(cut.scores, dtype=dtype, device=device) for _ in range(3 if shifts else 2)]
    with exact_products(), torch.no_grad():
        for here in _places(inputs, cut, count, first):
            x = _scores(here, spare)
            for shift, names, each in zip(steady, asked[1:], sums[1:], strict=True):
                place = here.place if shift.shape[2] > 1 else (*here.place[:2], slice(None))
                there = here._replace(shift=shift[place], base=x)
                _add_up_shifted(there, names, Sums(*each[:, *here.place]), spare)
            _add_up(x, here, asked[0], Sums(*sums[0][:, *here.place]), spare, partial(_scores, here, spare))
    visible = None if first is None else inputs.sees(first)
    summed = [(Sums(*each), names) for each, names in zip(sums, asked, strict=True)]
    rows = [_read(each, count, names, visible) for each, names in summed]
    variances = [_variance(each.shift, count, SHIFT_VARIANCE in names) for each, names in summed]
    return rows[0], tuple(map(Variant, rows[1:], variances[1:]))


def chunked_parts(
    inputs: AttentionInputs, mean: Tensor, means: Tensor, whole: bool
) -> tuple[list[AttentionRows | None], Tensor]:
    """What `part_rows` gives: rows without parts of their scores, and the variances of all parts.

    The parts are products of the mean queries `mean` [b or 1, h, t, e], and of what is left of the queries,
    with the mean keys `means` [b or 1, g, s, e], and what is left of the keys. Rows without position and key
    are read where `whole`.
    """
    b, h, t, s = inputs.shape
    device, dtype, wanted = inputs.source.device, inputs.dtype, inputs.wanted
    assert inputs.q is not None
    assert inputs.k is not None
    mean, means = mean.to(dtype), means.to(dtype)
    inputs = replace(inputs, q=inputs.q.to(dtype) - mean, k=inputs.k.to(dtype) - means)
    sums = [torch.zeros((len(Sums._fields), b, h, t), dtype=dtype, device=device) for _ in range(4)]
    spread = torch.zeros((3, b, h, t), dtype=dtype, device=device)
    count = torch.zeros((b, h, t), dtype=dtype, device=device)
    first = inputs.first_keys() if s and "first_key" in wanted else None
    added = None if inputs.mask is None or inputs.mask.dtype == torch.bool else inputs.mask
    cut = _cut(inputs)
    spare = [torch.empty(cut.scores, dtype=dtype, device=device) for _ in range(6)]
    with exact_products(), torch.no_grad():
        for here in _places(inputs, cut, count, first):
            parts = _parts(here, mean, means, added, spare)
            for x, of in zip(parts[:3], spread, strict=True):
                of[here.place].copy_(_spread(x, here, spare))
            position, by_key, by_query, content = parts
            variants = (by_query, position), (by_query,), (by_key,), ()
            for number, others in enumerate(variants):
                if number != 1 or whole:
                    again = partial(_put_together, content, others, spare)
                    _add_up(again(), here, wanted, Sums(*sums[number][:, *here.place]), spare, again)
    visible = None if first is None else inputs.sees(first)
    rows = [
        _read(Sums(*each), count, wanted, visible) if number != 1 or whole else None
        for number, each in enumerate(sums)
    ]
    content_rows = rows[3]
    assert content_rows is not None
    variances = [_variance(each, count, True) for each in spread]
    return rows, torch.stack([*variances, content_rows.score_variance])


@contextmanager
def exact_products() -> Iterator[None]:
    """Let no float32 product be rounded to TF32 or bfloat16 meanwhile, whatever the caller has allowed."""
    places = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)  # type: ignore[attr-defined]
    before = [place.fp32_precision for place in places]
    for place in places:
        place.fp32_precision = "ieee"
    try:
        yield
    finally:
        for place, precision in zip(places, before, strict=True):
            place.fp32_precision = precision


class _Cut(NamedTuple):
    """How many queries, key heads and sequences are worked on together, and the scores that makes."""

    queries: int
    groups: int
    batch: int
    scores: int


class _Here(NamedTuple):
    """A strip of some heads, and what its scores are made of."""

    part: AttentionInputs
    strip: Strip
    place: tuple[slice, slice, slice]  # sequences, heads, queries
    k: Tensor | None  # [b·g, s, e]
    visible: Tensor  # the number of visible keys, [b, h, t]
    first: Tensor | None  # the column of the first key, [b, h]; it may lie outside
    shift: Tensor | None = None  # subtracted from the queries, [b, h, t or 1, e]
    base: Tensor | None = None  # the scores without that

    @property
    def ahead(self) -> int:
        """The column of the strip's first query."""
        return self.strip.rows.start + self.part.offset - self.strip.keys.start


def _cut(inputs: AttentionInputs) -> _Cut:
    b, h, t, s = inputs.shape
    kind = inputs.source.device.type
    budget = _SCORES.get(kind, _SCORES["cpu"]) * (torch.get_num_threads() if kind == "cpu" else 1)
    least, most = _QUERIES.get(kind, _QUERIES["cpu"])
    r = max(1, h // max(1, inputs.groups))
    fit = budget // (r * max(1, s))
    if inputs.causal or inputs.window is not None:  # longer strips multiply more keys that are hidden
        fit = min(fit, most, max(least, t // 8))
    queries = max(1, min(t, max(fit, least // r)))
    together = max(1, budget // max(1, r * queries * s))
    groups = math.ceil(inputs.groups / math.ceil(inputs.groups / together)) if inputs.groups else 1
    parts = max(1, round(b * inputs.groups / together))  # alike, rather than one that is full and a small one
    batch = max(1, math.ceil(b / parts)) if groups == inputs.groups else 1
    return _Cut(queries, groups, batch, batch * groups * r * queries * s)


def _places(inputs: AttentionInputs, cut: _Cut, count: Tensor, first: Tensor | None) -> Iterator[_Here]:
    """Every strip of every group of heads; writes the number of visible keys to `count` [b, h, t]."""
    b, h, _, s = inputs.shape
    r = h // max(1, inputs.groups)
    for batch in pieces(b if s else 0, cut.batch):
        part = inputs.part(batch)
        keys = None if part.k is None else part.k.to(inputs.dtype).contiguous()  # once, not strip by strip
        for strip in part.strips(cut.queries):
            count[batch, :, strip.rows] = strip.visible
            for group in pieces(inputs.groups, cut.groups):
                heads = slice(group.start * r, group.stop * r)
                place = batch, heads, strip.rows
                yield _Here(
                    part,
                    strip.of_heads(heads),
                    place,
                    None if keys is None else keys[:, group, strip.keys].flatten(0, 1),
                    count[place],
                    None if first is None else first[batch, heads] - strip.keys.start,
                )


def _steady(shift: Tensor) -> Tensor:
    """A shift that is the same at every position as [b, h, 1, e], any other as it is."""
    one = shift[:, :, :1]
    return one if shift.stride(2) == 0 or torch.equal(shift, one.expand_as(shift)) else shift


def _products(q: Tensor, k: Tensor, scale: float, out: Tensor) -> Tensor:
    """scale·q·kᵀ in base 2, [b, h, t, s], written to `out`; q [b, h, t, e], k [b·g, s, e]."""
    (b, h, t, e), s = q.shape, k.shape[1]
    scaled = torch.mul(q.to(k.dtype), scale * _LOG2E, out=k.new_empty(q.shape))
    scaled = scaled.view(len(k), -1, e)  # heads that share their keys: one product
    products = out[: b * h * t * s]
    torch.bmm(scaled, k.mT, out=products.view(len(k), scaled.shape[1], s))
    return products.view(b, h, t, s)


def _scores(here: _Here, spare: list[Tensor]) -> Tensor:
    """The scores of a strip in base 2, [b, h, t, s]; hidden keys have finite scores or NaN.

    They lie in the first of `spare`; those of shifted queries in the third, and what was subtracted in the
    second.
    """
    part, place = here.part, (slice(None), here.place[1], here.strip.rows, here.strip.keys)
    if here.shift is not None:
        assert here.base is not None
        assert here.k is not None
        off = _products(here.shift, here.k, part.scale, spare[1])
        return torch.sub(here.base, off, out=spare[2][: here.base.numel()].view(here.base.shape))
    if part.scores is not None:
        given = _shown(part.scores[place]).to(part.dtype)
        x = torch.mul(given, _LOG2E, out=spare[0][: given.numel()].view(given.shape))
    else:
        assert part.q is not None
        assert here.k is not None
        x = _products(part.q[place[:3]], here.k, part.scale, spare[0])
    if part.softcap is not None:
        cap = part.softcap * _LOG2E
        x.div_(cap).tanh_().mul_(cap)
    for term in (part.mask, part.bias, part.key_bias):
        if term is not None and term.dtype != torch.bool:
            added = compact(term[place])
            x.add_((_shown(added) if term is part.mask else added).to(x.dtype), alpha=_LOG2E)
    return x


def _parts(
    here: _Here, mean: Tensor, means: Tensor, added: Tensor | None, spare: list[Tensor]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The four parts of the scores of a strip in base 2, hidden ones finite or NaN.

    [b, h, t, s] each; the position's [1, h, t, s] where it is the same for all sequences.
    """
    part, (batch, heads, rows) = here.part, here.place
    assert part.q is not None
    assert here.k is not None
    ratio, keys = part.shape[1] // part.groups, here.strip.keys
    groups = slice(heads.start // ratio, heads.stop // ratio)
    own = part.q[:, heads, rows]
    shared = mean[batch if len(mean) > 1 else slice(None), heads, rows]
    places = means[batch if len(means) > 1 else slice(None), groups, keys]

    def product(one: Tensor, other: Tensor, out: Tensor) -> Tensor:
        many = max(len(one), len(other))
        one, other = (each.expand(many, -1, -1, -1) for each in (one, other))
        return _products(one, other.flatten(0, 1), part.scale, out)

    content = _products(own, here.k, part.scale, spare[0])
    by_key = _products(shared.expand(own.shape), here.k, part.scale, spare[3])
    by_query = product(own, places, spare[4])
    position = product(shared, places, spare[5])
    if added is not None:
        term = compact(added[batch, heads, rows, keys])
        if len(position) < len(term):
            position = product(shared.expand(len(term), -1, -1, -1), places, spare[5])
        position.add_(_shown(term).to(position.dtype), alpha=_LOG2E)
    return position, by_key, by_query, content


def _put_together(content: Tensor, others: Sequence[Tensor], spare: list[Tensor]) -> Tensor:
    """Scores that are the sum of some parts, the content's among them, in the third of `spare`."""
    x = spare[2][: content.numel()].view(content.shape).copy_(content)
    for other in others:
        x.add_(other)
    return x


def _spread(x: Tensor, here: _Here, spare: list[Tensor]) -> Tensor:
    """√Σ (x − mean)² over the visible keys, [b, h, t]; of one sequence where all see and are the same."""
    if any(len(shown) > len(x) for _, shown in here.strip.edges):
        x = x.expand(len(here.visible), -1, -1, -1)
    x = spare[1][: x.numel()].view(x.shape).copy_(x)
    _centre(x, here._replace(visible=here.visible[: len(x)]))
    return torch.linalg.vector_norm(x, dim=-1)


def _shown(term: Tensor) -> Tensor:
    """A term that hides keys, finite where it does."""
    return term.clamp_min(hidden_at_most(term.dtype))


def _add_up_shifted(here: _Here, wanted: frozenset[str], sums: Sums, spare: list[Tensor]) -> None:
    """Write the sums over the scores of shifted queries, and over what the shift subtracts."""
    assert here.base is not None
    assert here.shift is not None
    shape = here.base.shape
    x = _scores(here, spare)
    if SHIFT_VARIANCE in wanted:
        off = spare[1][: x.numel()].view(shape)
        if here.shift.shape[2] < shape[2]:
            once = spare[1][: shape[0] * shape[1] * shape[3]].clone()
            off.copy_(once.view(*shape[:2], 1, shape[3]))
        _centre(off, here)
        sums.shift.copy_(torch.linalg.vector_norm(off, dim=-1))
    _add_up(x, here, wanted, sums, spare, partial(_scores, here, spare))


def _add_up(
    x: Tensor,
    here: _Here,
    wanted: frozenset[str],
    sums: Sums,
    spare: list[Tensor],
    again: Callable[[], Tensor],
) -> None:
    """Write the sums over the scores `x` [b, h, t, s], which are used up, as is the second of `spare`.

    `again` makes the scores once more.
    """
    if not wanted & (_WEIGHED | {"score_variance"}):
        return
    mean = _centre(x, here)
    sums.mean.copy_(mean)
    if "score_variance" in wanted:
        sums.scatter.copy_(torch.linalg.vector_norm(x, dim=-1))
    if not wanted & _WEIGHED:
        return
    top, level = x.amax(-1), mean
    if bool((top > _HIGH).any()):  # the mean may be far away: -10,000 in an old mask
        x = again()
        for columns, shown in here.strip.edges:
            x[..., columns] = torch.where(shown > 0, x[..., columns], _NOWHERE)
        level = x.amax(-1)
        x.sub_(level[..., None])
        top = torch.zeros_like(level)
    sums.level.copy_(level)
    sums.top.copy_(top)
    weights = torch.exp2(x, out=spare[1][: x.numel()].view(x.shape))
    _hide(weights, here.strip)
    weight = weights.sum(-1)
    sums.weight.copy_(weight)
    if "collision" in wanted:
        sums.square.copy_(torch.linalg.vector_norm(weights, dim=-1))
    if "distance" in wanted:
        sums.travel.copy_(_travel(weights, weight, here))
    if "first_key" in wanted:
        assert here.first is not None
        column = here.first.clamp(0, x.shape[-1] - 1)[..., None, None].expand(*x.shape[:3], 1)
        sums.first.copy_(weights.gather(-1, column)[..., 0])
    if "entropy" in wanted:
        sums.energy.copy_(x.mul_(weights).sum(-1))


def _hide(x: Tensor, strip: Strip) -> None:
    for columns, shown in strip.edges:
        x[..., columns].mul_(shown)


def _centre(x: Tensor, here: _Here) -> Tensor:
    """Take the mean over the visible keys away from `x` in place, and zero what is hidden; the mean."""
    _hide(x, here.strip)
    total = x.sum(-1)
    if here.strip.edges and not bool(total.isfinite().all()):  # what is hidden may be NaN, and 0·NaN is
        for columns, shown in here.strip.edges:
            x[..., columns] = torch.where(shown > 0, x[..., columns], 0.0)
        total = x.sum(-1)
    mean = total / here.visible.clamp_min(1.0)
    x.sub_(mean[..., None])
    _hide(x, here.strip)
    return mean


def _travel(weights: Tensor, total: Tensor, here: _Here) -> Tensor:
    """Σ w·|i' − j|: by products on either side of the strip's queries, one by one beside them."""
    t, s = weights.shape[2:]
    rows = weights.view(-1, s)
    local = torch.arange(s, dtype=weights.dtype, device=weights.device)
    at = torch.arange(here.ahead, here.ahead + t, dtype=weights.dtype, device=weights.device)
    if here.part.causal:
        return total * at - (rows @ local).view(total.shape)
    low, high = min(max(here.ahead, 0), s), min(max(here.ahead + t, 0), s)
    travel = (weights[..., low:high] * (at[:, None] - local[low:high]).abs()).sum(-1)
    for columns, sign in ((slice(0, low), 1), (slice(high, s), -1)):
        if columns.start < columns.stop:
            moment = (rows[:, columns] @ local[columns]).view(total.shape)
            travel += sign * (weights[..., columns].sum(-1) * at - moment)
    return travel


def _variance(norm: Tensor, count: Tensor, wanted: bool) -> Tensor:
    """The variance in nats of what has this norm about its mean in base 2; NaN where nothing is visible."""
    if not wanted:
        return count.new_full((), math.nan).expand(count.shape)
    variance = norm.square() / count * _LN2**2
    return variance.masked_fill(~variance.isfinite(), math.nan)


def _read(sums: Sums, count: Tensor, wanted: frozenset[str], first_visible: Tensor | None) -> AttentionRows:
    usable = (count > 0) & sums.mean.isfinite() & sums.weight.isfinite()
    nothing = count.new_full((), math.nan).expand(count.shape)

    def read(values: Tensor) -> Tensor:
        return torch.where(usable, values, math.nan)

    variance = read(_variance(sums.scatter, count, True)) if "score_variance" in wanted else nothing
    if not wanted & _WEIGHED:
        return AttentionRows(
            nothing, nothing, nothing, nothing, nothing, variance, nothing, count.int(), nothing
        )
    bits = sums.weight.log2()
    first = nothing
    if "first_key" in wanted and first_visible is not None:
        first = read(torch.where(first_visible, (sums.first / sums.weight).clamp_max(1.0), math.nan))
    return AttentionRows(
        lse=read((sums.level + bits) * _LN2),
        entropy=read(((bits - sums.energy / sums.weight) * _LN2).clamp_min(0.0))
        if "entropy" in wanted
        else nothing,
        largest=read((sums.top.exp2() / sums.weight).clamp_max(1.0)),
        collision=read((sums.square / sums.weight).square()) if "collision" in wanted else nothing,
        max_score=read((sums.level + sums.top) * _LN2),
        score_variance=variance,
        first_key=first,
        visible=count.int(),
        distance=read(sums.travel / sums.weight) if "distance" in wanted else nothing,
    )
