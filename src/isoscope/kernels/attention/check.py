"""The inputs of attention rows, checked: every refusal is one sentence that says what to give instead."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from isoscope.kernels.attention.inputs import STATISTICS, AttentionInputs


def spread(
    name: str, term: Tensor | None, shape: tuple[int, int, int, int], *, boolean: bool
) -> Tensor | None:
    """`term` as a view of `shape`, or one sentence on why it cannot be."""
    if term is None:
        return None
    if not (term.is_floating_point() or (boolean and term.dtype == torch.bool)):
        kinds = "boolean or floating" if boolean else "floating"
        raise ValueError(f"{name} must be {kinds}; it is {term.dtype}: compare it with 0, or convert it")
    sizes = (1,) * (4 - term.ndim) + tuple(term.shape)
    if len(sizes) != 4 or any(size not in (1, full) for size, full in zip(sizes, shape, strict=True)):
        raise ValueError(
            f"{name} must broadcast to [batch, heads, queries, keys], here {list(shape)}; "
            f"it is {list(term.shape)}"
        )
    return term.expand(shape)


def check(
    q: Tensor | None,
    k: Tensor | None,
    scores: Tensor | None,
    *,
    scale: float | None,
    causal: bool,
    key_lengths: Tensor | None,
    mask: Tensor | None,
    bias: Tensor | None,
    window: int | None,
    softcap: float | None,
    key_bias: Tensor | None,
    wanted: Collection[str],
) -> AttentionInputs:
    """Put the inputs into one record, or raise a `ValueError` of one sentence."""
    if scores is not None:
        if scores.ndim != 4 or not scores.is_floating_point():
            raise ValueError(
                "scores must be floating and of shape [batch, heads, queries, keys]; "
                f"they are {scores.dtype} of shape {list(scores.shape)}"
            )
        b, h, t, s = scores.shape
        device = scores.device
    else:
        assert q is not None
        assert k is not None
        _check_heads(q, k)
        (b, h, t, _), s, device = q.shape, k.shape[2], q.device
        scale = q.shape[-1] ** -0.5 if scale is None else scale
    scale = 1.0 if scale is None else scale
    if not (scale > 0 and math.isfinite(scale)):
        raise ValueError(f"scale must be a positive number; it is {scale}")
    if softcap is not None and not (softcap > 0 and math.isfinite(softcap)):
        raise ValueError(f"softcap must be a positive number; it is {softcap}: give None to have none")
    if window is not None and window < 1:
        raise ValueError(f"window must be at least 1, the query's own position; it is {window}")
    if key_lengths is not None:
        if key_lengths.shape != (b,) or key_lengths.is_floating_point() or key_lengths.dtype == torch.bool:
            raise ValueError(
                f"key_lengths must be {b} whole numbers, one a sequence; "
                f"it is {key_lengths.dtype} of shape {list(key_lengths.shape)}"
            )
        key_lengths = key_lengths.to(device)
    wanted = frozenset(wanted)
    unknown = wanted.difference(STATISTICS)
    if unknown:
        raise ValueError(f"wanted names no statistic: {sorted(unknown)}; there are {', '.join(STATISTICS)}")
    for name, term in (("mask", mask), ("bias", bias), ("key_bias", key_bias)):
        if term is not None and term.device != device:
            raise ValueError(f"{name} is on {term.device} and the inputs are on {device}: move it there")
    shape = (b, h, t, s)
    return AttentionInputs(
        shape=shape,
        q=q,
        k=k,
        scores=scores,
        scale=scale,
        causal=causal,
        key_lengths=key_lengths,
        mask=spread("mask", mask, shape, boolean=True),
        bias=spread("bias", bias, shape, boolean=False),
        window=window,
        softcap=softcap,
        key_bias=spread("key_bias", key_bias, shape, boolean=False),
        wanted=wanted,
    )


def check_shifts(
    q: Tensor, shifts: Sequence[Tensor], wanted: Sequence[Collection[str]], names: Collection[str]
) -> tuple[tuple[Tensor, ...], tuple[frozenset[str], ...]]:
    """Shifts as views of the shape of q, and what is wanted of each, or one sentence on why not."""
    if len(wanted) != len(shifts):
        raise ValueError(
            f"wanted_of must name statistics for each of {len(shifts)} shifts; it has {len(wanted)}"
        )
    unknown = frozenset[str]().union(*wanted).difference(names)
    if unknown:
        raise ValueError(f"wanted_of names no statistic: {sorted(unknown)}; there are {', '.join(names)}")
    for shift in shifts:
        sizes = (1,) * (4 - shift.ndim) + tuple(shift.shape)
        if len(sizes) != 4 or any(size not in (1, full) for size, full in zip(sizes, q.shape, strict=True)):
            raise ValueError(
                f"a shift must broadcast to the queries {list(q.shape)}; it is {list(shift.shape)}"
            )
        if shift.device != q.device:
            raise ValueError(f"a shift is on {shift.device} and the queries are on {q.device}: move it there")
    return tuple(shift.expand(q.shape) for shift in shifts), tuple(map(frozenset, wanted))


def _check_heads(q: Tensor, k: Tensor) -> None:
    if q.ndim != 4 or k.ndim != 4:
        raise ValueError(
            "q and k must be [batch, heads, queries or keys, width]; "
            f"they are {list(q.shape)} and {list(k.shape)}"
        )
    if q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3]:
        raise ValueError(
            f"q and k must have the same batch and width; they are {list(q.shape)} and {list(k.shape)}"
        )
    if k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        raise ValueError(
            f"the query heads must be a multiple of the key heads; there are {q.shape[1]} and {k.shape[1]}"
        )
    if q.device != k.device or q.dtype != k.dtype or not q.is_floating_point():
        raise ValueError(
            "q and k must be floating, of one dtype, on one device; "
            f"they are {q.dtype} on {q.device} and {k.dtype} on {k.device}"
        )
