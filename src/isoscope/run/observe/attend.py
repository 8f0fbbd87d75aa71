"""From one attention as the tap shows it to what records are made of: rows, and which of them count.

A query counts by the data's mask where its length is that of the queries, else by the diagonal of the
attention's own mask, else always; a remark says so. Attention within windows (Swin) comes with the windows
as batch: they are laid end to end again, as the sequence they were cut from. What a model adds to a score to
hide its key need not be −inf: from −1e8 on it hides (−1e9 and −1e30 are in use), within windows from −50 on
(Swin adds −100), so that no such number is taken for a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from isoscope.data.batch import Batch
from isoscope.data.counting import pooled, tokens_before
from isoscope.geometry import anatomy
from isoscope.geometry.attention import AttentionRows, hidden_at_most, seen, weight_rows
from isoscope.kernels.attention.parts import VARIANTS, PartRows, part_rows
from isoscope.kernels.attention.rows import (
    SHIFT_VARIANCE,
    attention_rows,
    score_rows,
    variant_rows,
)
from isoscope.kernels.cloud.chunks import sent
from isoscope.kernels.cloud.totals import fused
from isoscope.models.attention.tap import Attended
from isoscope.stats.anatomy import Controlled, Dissected
from isoscope.stats.counterfactual import Counterfact
from isoscope.stats.heads import Heads, Positions

READ = ("entropy", "score_variance", "first_key")  # of rows without the mean query, and as they are beside
READ_OF_RANDOM = ("entropy", "first_key")
LEAST = 8  # sequences that make a mean at a position
GONE, GONE_IN_WINDOWS = -1e8, -50.0  # what is added to a score at or under this hides its key


def settled(attended: Attended, sequences: int) -> Attended | str:
    """The attention with −inf wherever a key is hidden; or why it cannot be told whose rows are whose."""
    some = attended.query if attended.query is not None else attended.scores
    if some is None:
        raise ValueError("attention with neither queries nor scores")
    if len(some) % sequences:
        return f"attention over a batch of {len(some)} where the data has {sequences} sequences is left out"
    gone = GONE if len(some) == sequences else GONE_IN_WINDOWS
    mask, scores = attended.mask, attended.scores
    if mask is not None and mask.dtype != torch.bool:
        mask = mask.masked_fill(mask <= max(gone, hidden_at_most(mask.dtype)), -torch.inf)
    if scores is not None:
        hidden = scores <= max(gone, hidden_at_most(scores.dtype))
        scores = scores.masked_fill(hidden if mask is None else hidden | ~seen(mask), -torch.inf)
    return replace(attended, mask=mask, scores=scores)


class Near:
    """A batch whose keys and counts are on the device where its attention is read.

    Which positions count is worked out once for all attentions of one shape.
    """

    def __init__(self, batch: Batch, device: torch.device | None) -> None:
        self._joint = batch.joint
        if device is not None:
            counts, spoken = (
                None if x is None else sent(x, device) for x in (batch.counts, batch.decoder_counts)
            )
            units = None if batch.units is None else sent(batch.units, device)
            batch = replace(
                batch, counts=counts, keys=sent(batch.keys, device), units=units, decoder_counts=spoken
            )
        self.batch = batch
        self._known: dict[tuple[object, ...], tuple[Positions, str]] = {}

    def of_queries(self, attended: Attended, size: int, length: int, decoder: bool) -> tuple[Positions, str]:
        """Which of the queries count, and a remark."""
        kind = "queries", size, length, decoder
        if kind not in self._known:
            batch, sequences = self.batch, len(self.batch)
            counts, remark, by_mask = _counted(batch.counted(length, decoder=decoder), attended, size, length)
            if batch.patches is not None and size == sequences:
                real = torch.arange(length, device=counts.device) >= tokens_before(length, batch.patches)
                counts = counts & real
            found = self._positions(counts), remark
            if by_mask:
                return found
            self._known[kind] = found
        return self._known[kind]

    def of_keys(self, attended: Attended, size: int, length: int) -> Positions:
        """Which of the keys count, where they are not those of the queries' positions."""
        kind = "keys", size, length
        if kind not in self._known:
            counts, *_ = _counted(self.batch.counts, replace(attended, mask=None), size, length)
            self._known[kind] = self._positions(counts), ""
        return self._known[kind][0]

    def _positions(self, counts: Tensor) -> Positions:
        batch = self.batch
        return Positions(_of_windows(counts, len(batch)), batch.keys, batch.units, self._joint)


@dataclass(frozen=True, eq=False)
class WhichCount:
    """Which queries and keys of an attention count."""

    queries: Positions
    keys: Positions
    remark: str


def see_positions(attended: Attended, near: Near, *, decoder: bool) -> WhichCount:
    """Which rows of one attention, `settled`, count, and which keys."""
    some = attended.query if attended.query is not None else attended.scores
    if some is None:
        raise ValueError("attention with neither queries nor scores")
    size, length = len(some), some.shape[2]
    positions, remark = near.of_queries(attended, size, length, decoder)
    keys, key_positions = attended.key, positions
    if keys is not None and (attended.cross or keys.shape[2] != length):
        key_positions = near.of_keys(attended, size, keys.shape[2])
    return WhichCount(positions, key_positions, remark)


def see_heads(attended: Attended, counted: WhichCount) -> Heads:
    """The rows of one attention, `settled`; of k at once where its tensors have an axis [k, …] in front."""
    sequences, query, keys = len(counted.queries.key), attended.query, attended.key
    shown = query is not None and keys is not None
    unrotated = attended.unrotated if attended.unrotated is not query and shown else None
    before = attended.unrotated_key if attended.unrotated_key is not keys and shown else None
    rows, mass = _rows_and_mass(attended)
    if query is not None and query.dim() == 5:
        return Heads(rows, counted.queries, query, unrotated, keys, counted.keys, None, before)
    return Heads(
        rows=_rows_joined(rows, sequences),
        positions=counted.queries,
        query=_joined(query, sequences) if shown else None,
        unrotated=None if unrotated is None else _joined(unrotated, sequences),
        keys=_joined(keys, sequences) if shown else None,
        key_positions=counted.keys if shown else None,
        mass=None if mass is None else _joined(mass, sequences),
        unrotated_keys=None if before is None else _joined(before, sequences),
    )


def same_attention(attended: Attended, counted: WhichCount) -> object:
    """What attentions that can be read at once have in common; None where this one is read by itself."""
    query, mask, sequences = attended.query, attended.mask, len(counted.queries.key)
    if query is None or attended.key is None or attended.scores is not None or len(query) != sequences:
        return None
    if not (fused(query) or query.device.type == "cpu") or (mask is not None and len(mask) > 1):
        return None
    turned = attended.unrotated is not None and attended.unrotated is not query
    before = attended.unrotated_key is not None and attended.unrotated_key is not attended.key
    return attended.scale, attended.causal, id(mask), turned, before, id(counted.queries), id(counted.keys)


def _of_windows(counts: Tensor, sequences: int) -> Tensor:
    """[b·w, t] of w windows a sequence as [b, w·t]."""
    return counts if len(counts) == sequences else _joined(counts[:, None], sequences)[:, 0]


def _joined(of_windows: Tensor | None, sequences: int) -> Tensor:
    """[b·w, h, t, …] of w windows a sequence as [b, h, w·t, …]."""
    assert of_windows is not None
    if len(of_windows) == sequences:
        return of_windows
    windows = len(of_windows) // sequences
    return of_windows.reshape(sequences, windows, *of_windows.shape[1:]).transpose(1, 2).flatten(2, 3)


def _rows_joined(rows: AttentionRows, sequences: int) -> AttentionRows:
    if len(rows.entropy) == sequences:
        return rows
    return AttentionRows(**{name: _joined(field, sequences) for name, field in vars(rows).items()})


def _rows_and_mass(attended: Attended) -> tuple[AttentionRows, Tensor | None]:
    """The row statistics, and what the weights of each row add up to where they are no softmax, [b, h, t]."""
    if attended.weights_of is None or attended.scores is None:
        return rows_of(attended), None
    weights = attended.weights_of(attended.scores)
    mass = weights.double().masked_fill(~seen(attended.scores), 0).sum(-1)
    return weight_rows(weights, attended.scores), mass


def rows_of(attended: Attended, query: Tensor | None = None) -> AttentionRows:
    """The row statistics of an attention; of other queries [b, h, t, e] in its place where given."""
    if attended.scores is not None and query is None:
        return score_rows(attended.scores) if attended.weights_of is None else _rows_and_mass(attended)[0]
    mine, keys = attended.query if query is None else query, attended.key
    if mine is None or keys is None:
        raise ValueError("attention that shows no queries has no other rows")
    if attended.weights_of is not None and attended.scores is not None:
        scores = attended.scale * (mine @ keys.to(mine).mT)
        scores = scores.masked_fill(attended.scores.isneginf(), -torch.inf)
        return weight_rows(attended.weights_of(scores), scores)
    flat, sites = (mine.flatten(0, -4), keys.to(mine.dtype).flatten(0, -4)), mine.shape[:-3]
    rows = attention_rows(*flat, scale=attended.scale, causal=attended.causal, mask=attended.mask)
    return _of_sites(rows, sites)


def _of_sites(rows: AttentionRows, sites: Sequence[int]) -> AttentionRows:
    """Rows [k·b, h, t] as [k, b, h, t] where there are several sites, if they are not so already."""
    if len(sites) == 1 or rows.lse.dim() == 4:
        return rows
    return AttentionRows(**{name: each.reshape(*sites, *each.shape[1:]) for name, each in vars(rows).items()})


def see_counterfact(
    attended: Attended, positions: Positions, means: Tensor, random: Tensor, behind: Tensor
) -> Counterfact:
    """Rows as they are, without the mean query and without a random one.

    The mean and random queries are turned to every row [b or 1, h, t, e]. `behind` is how many independent
    queries the mean is of, broadcasting to [b, h, t]. All may have an axis of sites in front.
    """
    query = attended.query
    if query is None:
        raise ValueError("attention that shows no queries has no mean query")
    exact = torch.float64 if query.dtype == torch.float64 else torch.float32
    means, random = (each.to(query.device, exact) for each in (means, random))
    sequences, sites = len(positions.key), query.shape[:-3]
    if attended.weights_of is None and attended.key is not None:
        several = len(sites) > 1
        shifts = [each.expand_as(query).flatten(0, 1) if several else each for each in (means, random)]
        scored = attended.scores is not None
        found, (without, chance) = variant_rows(
            query.flatten(0, -4), attended.key.to(query.dtype).flatten(0, -4), shifts,
            scale=attended.scale, causal=attended.causal, mask=attended.mask, wanted=() if scored else READ,
            wanted_of=[(*READ, SHIFT_VARIANCE), READ_OF_RANDOM],
        )  # fmt: skip
        whole = rows_of(attended) if scored else _of_sites(found, sites)
        rows, others = _of_sites(without.rows, sites), _of_sites(chance.rows, sites)
        variance = without.shift_variance.reshape(query.shape[:-1])
    else:
        bare = replace(attended, mask=None if attended.mask is None else seen(attended.mask))
        variance = rows_of(bare, means.expand_as(query)).score_variance
        whole = rows_of(attended)
        rows, others = rows_of(attended, query.to(exact) - means), rows_of(attended, query.to(exact) - random)
    if len(sites) == 1:
        whole, rows, others = (_rows_joined(each, sequences) for each in (whole, rows, others))
        variance = _joined(variance, sequences)
    return Counterfact(whole, positions, rows, others, variance, behind)


@dataclass(frozen=True, eq=False)
class Means:
    """Mean queries [b or 1, h, t, e] and keys [b or 1, g, s, e] of an attention, turned to their places.

    `behind` and `behind_key` are how many independent ones they are of, broadcasting to [b, h, t]. Without
    keys, the mean key is one for all positions and cancels. `left_out`: they are of other sequences. All may
    have an axis of sites in front.
    """

    query: Tensor
    key: Tensor | None
    behind: Tensor
    behind_key: Tensor
    left_out: bool = False


def see_anatomy(
    attended: Attended, seen_without: Counterfact, positions: Positions, means: Means, *, known: bool
) -> Dissected:
    """Rows without parts of their scores; `known`: `seen_without` are those without position and key."""
    query, key, rows = attended.query, attended.key, seen_without.without
    if query is None or key is None:
        raise ValueError("attention that shows no queries and keys has no parts of its scores")
    sequences, sites = len(positions.key), query.shape[:-3]
    if means.key is None:
        nothing, variance = (
            torch.zeros_like(rows.score_variance),
            seen_without.drift_variance.to(rows.entropy),
        )
        variances = torch.stack([nothing, variance, nothing, rows.score_variance])
        parts = PartRows(rows, rows, seen_without.rows, rows, variances)
    elif attended.weights_of is not None and attended.scores is not None:
        parts = _told_parts(attended, query, key, means.query, means.key)
    else:
        flat = [each.to(query.device) for each in (means.query, means.key)]
        if len(sites) > 1:
            whole = zip(flat, (query, key), strict=True)
            flat = [each.expand_as(like).flatten(0, 1) for each, like in whole]
        found = part_rows(
            query.flatten(0, -4), key.to(query.dtype).flatten(0, -4), *flat, scale=attended.scale,
            causal=attended.causal, mask=attended.mask, wanted=READ,
            known=rows if known and len(query) == sequences else None,
        )  # fmt: skip
        each = {name: _of_sites(getattr(found, name), sites) for name in VARIANTS}
        parts = PartRows(**each, variances=found.variances.view(len(found.variances), *query.shape[:-1]))
    if len(sites) == 1 and len(query) != sequences and means.key is not None:
        each = {name: _rows_joined(getattr(parts, name), sequences) for name in VARIANTS}
        variances = torch.stack([_joined(x, sequences) for x in parts.variances])
        parts = PartRows(**each, variances=variances)
    rows = seen_without.rows
    return Dissected(rows, positions, parts, means.behind, means.behind_key, means.left_out)


def _told_parts(attended: Attended, query: Tensor, key: Tensor, mean: Tensor, means: Tensor) -> PartRows:
    """The parts of attention that tells its own scores and how it weighs them, from the whole matrices."""
    assert attended.scores is not None
    assert attended.weights_of is not None
    scores, copies = attended.scores, query.shape[1] // key.shape[1]
    key, means = (each.repeat_interleave(copies, 1) for each in (key, means))
    hidden, product = ~seen(scores), attended.scale * query.double() @ key.double().mT
    added = torch.where(hidden, 0, scores.double() - product)
    each = anatomy.parts(query, key, mean, means, attended.scale, added)

    def rows(*taken: str) -> AttentionRows:
        left = anatomy.without(scores.double(), each, taken).to(scores.dtype)
        assert attended.weights_of is not None
        return weight_rows(attended.weights_of(left), left)

    position, by_key, by_query = anatomy.PARTS[:3]
    variances = [score_rows(part.masked_fill(hidden, -torch.inf)).score_variance for part in each]
    return PartRows(
        rows(by_key), rows(position, by_key), rows(position, by_query), rows(position, by_key, by_query),
        torch.stack(variances),
    )  # fmt: skip


def see_controls(attended: Attended, found: Dissected, random: Sequence[Tensor]) -> Controlled:
    """Rows with the variance that some parts leave, and without random vectors, turned to every row."""
    query, key, rows = attended.query, attended.key, found.rows
    assert query is not None
    assert key is not None
    exact = torch.float64 if query.dtype == torch.float64 else torch.float32

    def scaled(left: AttentionRows) -> AttentionRows:
        factor = (left.score_variance / rows.score_variance).sqrt().to(exact)
        factor = torch.where(rows.score_variance > 0, factor, 1.0)
        return rows_of(attended, query.to(exact) * factor[..., None])

    parts = found.parts
    scaled_rows = scaled(parts.without_key), scaled(parts.without_position_and_key)
    without = (rows_of(attended, query.to(exact) - each.to(query.device, exact)) for each in random)
    return Controlled(rows, found.positions, *scaled_rows, tuple(without))


def adds_bias(attended: Attended) -> bool:
    """Whether the model adds numbers to scores that it does not hide."""
    mask = attended.mask
    return mask is not None and mask.dtype != torch.bool and bool(((mask != 0) & seen(mask)).any())


def numbered(attended: Attended, counted: WhichCount) -> tuple[Tensor, Positions]:
    """The number of every query's position [b, t], and which keys are seen by a query that counts.

    Positions of queries that are the keys' own are numbered among those keys, so that padding moves none.
    """
    queries, key = counted.queries, attended.key
    assert key is not None
    sequences, length = len(queries.key), key.shape[2]
    term = attended.mask if attended.scores is None or attended.weights_of is None else attended.scores
    visible = torch.ones(len(key), length, dtype=torch.bool, device=key.device)
    if term is not None:
        shown = seen(term).any(1)
        if shown.shape[1:2] == queries.counts.shape[1:] and len(key) == sequences:
            shown = shown & queries.counts[..., None]
        visible = visible & shown.any(1)
    visible = _of_windows(visible, sequences)
    own = queries.counts.shape[1] == visible.shape[1] and not attended.cross
    return ((visible if own else queries.counts).cumsum(1) - 1).clamp_min(0), replace(queries, counts=visible)


@dataclass(frozen=True)
class AtPositions:
    """Sums of queries or keys at every position over sequences, for means that leave one sequence out.

    Positions are numbered among those that count, so that padding before a sequence moves none; or as `place`
    [b, t] says.
    """

    total: Tensor  # [t, h, e]
    count: Tensor  # [t]

    @classmethod
    def of(cls, query: Tensor, positions: Positions, place: Tensor | None = None) -> AtPositions:
        """Sum the queries [b, h, t, e] of one batch."""
        length = positions.counts.shape[1]
        number = _places(positions) if place is None else place
        if not query.is_cuda and len(query) == len(number) and bool(positions.counts.all()):
            straight = bool((number == torch.arange(length, device=number.device)).all())
            total = query.sum(0, dtype=torch.float64).transpose(0, 1)
            if straight and bool(total.isfinite().all()):
                return cls(total, torch.full((length,), float(len(query)), dtype=torch.float64))
        own, counts = _finite_queries(query, positions)
        at = number[counts]
        total = own.new_zeros(length, *own.shape[2:]).index_add_(0, at, own[counts])
        return cls(total, torch.bincount(at, minlength=length).double())

    def merge(self, other: AtPositions) -> AtPositions:
        """Add up, the shorter at the front of the longer."""
        one, two = sorted((self, other), key=lambda each: len(each.count))
        total, count = two.total.clone(), two.count.clone()
        total[: len(one.count)] += one.total
        count[: len(one.count)] += one.count
        return AtPositions(total, count)

    def without(
        self, query: Tensor, positions: Positions, windows: int = 1, place: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Positions]:
        """The mean at each position over the other sequences [b·w, h, t, e], and how many they are [b, 1, t].

        Positions with too few others do not count: what stands there is the mean over all positions.
        """
        own, counts = _finite_queries(query, positions)
        number = _places(positions) if place is None else place
        others = self.count[number] - counts.double()
        means = (self.total[number] - own) / others.clamp_min(1)[..., None, None]
        every = self.total.sum(0) / self.count.sum().clamp_min(1)
        enough = others >= LEAST - 1
        means = torch.where(enough[..., None, None], means, every).transpose(1, 2)
        b, h, length, width = means.shape
        apart = means.reshape(b, h, windows, length // windows, width).transpose(1, 2).flatten(0, 1)
        return apart, others[:, None], replace(positions, counts=counts & enough)

    @property
    def bytes(self) -> int:
        """How much memory the sums take."""
        return self.total.nbytes


def means_at_positions(
    attended: Attended, counted: WhichCount, at: tuple[AtPositions, AtPositions]
) -> tuple[Means, Positions]:
    """Mean queries and keys at each position over the other sequences, and which queries then count."""
    query, key = attended.query, attended.key
    assert query is not None
    assert key is not None
    place, keys = numbered(attended, counted)
    windows = len(query) // len(keys.key)
    mean, behind, where = at[0].without(query, counted.queries, windows, place)
    means, others, _ = at[1].without(key, keys, windows)
    known = torch.where(keys.counts, others[:, 0], 0).sum(1) / keys.counts.sum(1).clamp_min(1)
    return Means(mean, means, behind, known[:, None, None], left_out=True), where


def _places(positions: Positions) -> Tensor:
    """The number of every position among those that count, [b, t]."""
    return (positions.counts.cumsum(1) - 1).clamp_min(0)


def _finite_queries(query: Tensor, positions: Positions) -> tuple[Tensor, Tensor]:
    """Queries [b, t, h, e], zero where they do not count or are not finite, and which are left [b, t]."""
    query = _joined(query, len(positions.key)).double().transpose(1, 2)
    counts = positions.counts & query.isfinite().all(-1).all(-1)
    return torch.where(counts[..., None, None], query, 0), counts


def no_counterfact(attended: Attended) -> str:
    """Why the mean query of this attention cannot be taken away; empty where it can."""
    if attended.softcap is not None:
        return "its scores are soft-capped: a shift of the keys does not cancel there"
    if attended.query is None or attended.key is None:
        return attended.why or "its queries cannot be seen"
    return ""


def _counted(counts: Tensor | None, attended: Attended, size: int, length: int) -> tuple[Tensor, str, bool]:
    """What counts of `length` positions, a remark, and whether the attention's own mask decided it."""
    some = attended.query if attended.query is not None else attended.scores
    device = None if some is None else some.device
    if counts is not None and counts.shape == (size, length):
        return counts.to(device), "", False
    everything = torch.ones(size, length, dtype=torch.bool, device=device)
    if counts is None:
        return everything, "", False
    if len(counts) == size and (fitted := pooled(counts, length)) is not None:
        return fitted[0].to(everything.device), fitted[1], False
    mask = None if attended.mask is None else seen(attended.mask)
    if mask is not None and mask.dim() == 4 and mask.shape[2] == mask.shape[3] == length:
        own = mask.any(1).diagonal(dim1=1, dim2=2).expand(size, length)
        return own, "queries counted by the diagonal of the attention's mask", True
    told = f"{length} queries where the data has {counts.shape[1]} positions: all of them counted"
    return everything, told, True


def random_directions(shape: tuple[int, ...], *, seed: int) -> Tensor:
    """A random unit vector for each head, of `shape` [h, e]."""
    random = torch.Generator().manual_seed(seed)
    made = torch.randn(shape, generator=random, dtype=torch.float64)
    return made / made.norm(dim=-1, keepdim=True)
