"""From stored weights, cut as `names.Layout` says, to one matrix a head: W_Q [h, d, e] and W_K [g, d, e]."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from isoscope.errors import IsoscopeError
from isoscope.models.weights.names import Place

Read = Callable[[str], Tensor]


def weights_of(place: Place, read: Read) -> tuple[Tensor, Tensor]:
    """The weights that hold queries and keys, each [rows, d]; the same tensor where they are fused."""
    key = [read(name) for name in place.key]
    stood = [_upright(each, name) for each, name in zip(key, place.key, strict=True)]
    if place.query == place.key:
        return stood[0], stood[0]
    query = [_upright(read(name), name) for name in place.query]
    if place.cut == "key_value" and _lies(place.key[0], key[0]):
        query = [query[0].T]  # a square matrix does not show that it lies on its side: its key does
    return torch.cat(query), torch.cat(stood)


def biases_of(place: Place, names: frozenset[str], read: Read) -> tuple[Tensor | None, Tensor | None]:
    """The biases that go with `weights_of`, each [rows] or None; a fused one comes twice."""
    fused = place.query[0].removesuffix("q_proj_weight") + "in_proj_bias"
    if place.query[0].endswith("q_proj_weight") and fused in names:
        query, key, _ = read(fused).chunk(3)
        return query, key
    for own in ("q_bias", "r_w_bias"):  # DeBERTa v1, XLNet: the queries' alone
        if f"{place.module}.{own}" in names and place.cut in ("grouped", "headed"):
            return read(f"{place.module}.{own}").flatten(), None
    found = []
    for weights in (place.query, place.key):
        biases = [name.removesuffix("weight") + "bias" for name in weights]
        found.append(torch.cat([read(name) for name in biases]) if names.issuperset(biases) else None)
    return found[0], found[1]


def cut(
    query: Tensor, key: Tensor, layout: str, heads: int, key_heads: int, head_width: int | None
) -> tuple[Tensor, Tensor]:
    """Queries [h, e, d] and keys [g, e, d] of weights [rows, d]; a bias comes as [rows, 1].

    Where a weight is twice as wide as its heads, it holds a gate beside each, which is left away.
    A number of rows that the heads do not divide is a ValueError.
    """
    rows = len(query)
    if layout in ("whole", "headed", "key_value"):
        q = _fold(query, heads, _even(rows, heads))
        q = q[:, :head_width] if head_width is not None and q.shape[1] == 2 * head_width else q
        key = key[: len(key) // 2] if layout == "key_value" else key
        return q, _fold(key, _even(len(key), q.shape[1]), q.shape[1])
    e = _even(rows, heads + 2 * key_heads)
    if layout == "stacked":
        q, k, _ = torch.split(query, [heads * e, key_heads * e, key_heads * e])
        return _fold(q, heads, e), _fold(k, key_heads, e)
    if layout == "grouped":
        parts = _fold(query, key_heads, _even(heads, key_heads) + 2, e)
        return parts[:, :-2].flatten(0, 1), parts[:, -2]
    parts = _fold(query, 4, 3, _even(heads, 4), e)
    return parts[:, 0].flatten(0, 1), parts[:, 2].flatten(0, 1)


def cut_biases(
    query: Tensor | None, key: Tensor | None, layout: str, like: tuple[Tensor, Tensor], head_width: int | None
) -> tuple[Tensor | None, Tensor | None]:
    """The biases of each head, [h, e] and [g, e], cut as the weights `like` were."""
    (h, e, _), g = like[0].shape, len(like[1])
    if layout in ("whole", "headed") or query is None or key is None:
        queries = None if query is None else _fold(query, h, -1)[:, :e]
        return queries, None if key is None else _fold(key[: g * e], g, e)
    q, k = cut(query[:, None], key[:, None], layout, h, g, head_width)
    return q[..., 0], k[..., 0]


def _fold(x: Tensor, *lead: int) -> Tensor:
    """The first axis as these."""
    return x.reshape(*lead, *x.shape[1:])


def _upright(weight: Tensor, name: str) -> Tensor:
    """[rows, d]: Conv1D's and XLNet's weights lie on their side."""
    if weight.dim() == 3:
        return weight.flatten(1).T
    if weight.dim() != 2:
        raise IsoscopeError(f"{name} is no matrix of queries or keys: its shape is {tuple(weight.shape)}.")
    return weight.T if _lies(name, weight) else weight


def _lies(name: str, weight: Tensor) -> bool:
    """Whether a fused weight is [d, rows], which its shape shows: it has more rows than d."""
    return name.endswith("c_attn.weight") and len(weight) < weight.shape[1]


def _even(rows: int, parts: int) -> int:
    if parts < 1 or rows % parts:
        raise ValueError(f"{rows} rows do not divide into {parts}")
    return rows // parts
