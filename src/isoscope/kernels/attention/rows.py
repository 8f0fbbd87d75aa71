"""Attention rows without the attention matrix: how sharply every query attends, straight from q and k.

Two ways give the same record: `chunked` (torch, any device) and a Triton kernel (CUDA). Memory grows with the
number of tokens, never with its square. `attention_rows` and `score_rows` choose; `chosen_backend` says what
they choose and why, so that a run can record it. Twins: `geometry.attention.attention_rows`, `.score_rows`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from isoscope.geometry.attention import AttentionRows, seen
from isoscope.kernels.attention.check import check, check_shifts
from isoscope.kernels.attention.chunked import SHIFT_VARIANCE, Variant, chunked, chunked_variants
from isoscope.kernels.attention.inputs import STATISTICS, AttentionInputs

__all__ = [
    "SHIFT_VARIANCE",
    "STATISTICS",
    "AttentionRows",
    "Variant",
    "attention_rows",
    "chosen_backend",
    "chunked",
    "score_rows",
    "variant_rows",
]

BACKENDS = ("auto", "chunked", "triton")


def attention_rows(
    q: Tensor,
    k: Tensor,
    *,
    scale: float | None = None,
    causal: bool = False,
    key_lengths: Tensor | None = None,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    window: int | None = None,
    softcap: float | None = None,
    key_bias: Tensor | None = None,
    wanted: Collection[str] = STATISTICS,
    backend: str = "auto",
) -> AttentionRows:
    """Row statistics of softmax(softcap(scale·q·kᵀ) + mask + bias + key_bias), each [b, h, t].

    q [b, h, t, e]; k [b, g, s, e], h a multiple of g, never copied to h heads. `mask` (boolean, True is
    visible; or floating), `bias` and `key_bias` broadcast to [b, h, t, s]; `key_lengths` [b]; `window` counts
    keys on each side, the query's own included. `scale` is 1/√e unless given. Causal queries are the last t
    of the s positions. `wanted` leaves out costly statistics: those not named may be NaN. Good to 1e-5 nats
    for scores within ±10 and 5e-5 within ±80, against float64 on the same rounded inputs.

    >>> q = k = torch.zeros(1, 1, 4, 8)
    >>> attention_rows(q, k, causal=True).entropy.exp().round(decimals=4).tolist()
    [[[1.0, 2.0, 3.0, 4.0]]]
    """
    inputs = check(
        q,
        k,
        None,
        scale=scale,
        causal=causal,
        key_lengths=key_lengths,
        mask=mask,
        bias=bias,
        window=window,
        softcap=softcap,
        key_bias=key_bias,
        wanted=wanted,
    )
    if backend_for(inputs, backend)[0] == "chunked":
        return chunked(inputs)
    from isoscope.kernels.attention.triton import fused

    return fused(inputs)


def score_rows(
    scores: Tensor,
    *,
    causal: bool = False,
    key_lengths: Tensor | None = None,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    window: int | None = None,
    key_bias: Tensor | None = None,
) -> AttentionRows:
    """Row statistics of softmax(scores + …) where `scores` [b, h, t, s] exist already.

    For models that compute the softmax themselves. Scores of −inf, or at most finfo.min/2 of their dtype, are
    hidden keys. Two blocks of scores are held at a time beside the input.

    >>> score_rows(torch.tensor([[[[1.0, 1.0, -torch.inf]]]])).largest.tolist()
    [[[0.5]]]
    """
    inputs = check(
        None,
        None,
        scores,
        scale=None,
        causal=causal,
        key_lengths=key_lengths,
        mask=mask,
        bias=bias,
        window=window,
        softcap=None,
        key_bias=key_bias,
        wanted=STATISTICS,
    )
    return chunked(inputs)


def variant_rows(
    q: Tensor,
    k: Tensor,
    shifts: Sequence[Tensor],
    *,
    scale: float | None = None,
    causal: bool = False,
    key_lengths: Tensor | None = None,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    window: int | None = None,
    key_bias: Tensor | None = None,
    wanted: Collection[str] = STATISTICS,
    wanted_of: Sequence[Collection[str]] | None = None,
    backend: str = "auto",
) -> tuple[AttentionRows, tuple[Variant, ...]]:
    """The rows of q, and for each of `shifts` the rows of q − shift on the same keys.

    A shift broadcasts to q [b, h, t, e]; it may be in float32 where q is in bfloat16, and is subtracted in
    float32. On a CPU one that is the same at every position costs no product of queries and keys. `wanted`
    names the statistics of q; it may be empty. `wanted_of` names those of every shift: names of `STATISTICS`,
    and `SHIFT_VARIANCE` for the variance over the visible keys of scale·shift·k, without the values of mask
    and biases. By default all are computed. Other options are those of `attention_rows`.

    >>> q = k = torch.eye(2)[None, None]
    >>> rows, (without,) = variant_rows(q, k, [q.mean(2, keepdim=True)], scale=1.0)
    >>> rows.max_score[0, 0].tolist(), without.rows.max_score[0, 0].tolist()
    ([1.0, 1.0], [0.5, 0.5])
    """
    inputs = check(
        q,
        k,
        None,
        scale=scale,
        causal=causal,
        key_lengths=key_lengths,
        mask=mask,
        bias=bias,
        window=window,
        softcap=None,
        key_bias=key_bias,
        wanted=wanted,
    )
    every = (*STATISTICS, SHIFT_VARIANCE)
    shifts, asked = check_shifts(q, shifts, [every] * len(shifts) if wanted_of is None else wanted_of, every)
    if backend_for(inputs, backend)[0] == "chunked":
        return chunked_variants(inputs, shifts, asked)
    from isoscope.kernels.attention.triton import fused

    def of_shift(shift: Tensor, names: frozenset[str]) -> Variant:
        mine, shift = names - {SHIFT_VARIANCE}, shift.float()
        rows = fused(replace(inputs, q=q - shift, wanted=mine)) if mine else _nothing(q)
        if SHIFT_VARIANCE not in names:
            return Variant(rows, _nothing(q).score_variance)
        hidden = None if inputs.mask is None else seen(inputs.mask)
        bare = replace(inputs, mask=hidden, bias=None, key_bias=None, wanted=frozenset({"score_variance"}))
        return Variant(rows, fused(replace(bare, q=shift)).score_variance)

    whole = fused(inputs) if inputs.wanted else _nothing(q)
    return whole, tuple(map(of_shift, shifts, asked))


def _nothing(q: Tensor) -> AttentionRows:
    """Rows of which nothing was wanted."""
    nan = q.new_full((), torch.nan, dtype=torch.float32).expand(q.shape[:3])
    return AttentionRows(nan, nan, nan, nan, nan, nan, nan, torch.zeros_like(nan, dtype=torch.int32), nan)


def chosen_backend(
    q: Tensor,
    k: Tensor,
    *,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    softcap: float | None = None,
    key_bias: Tensor | None = None,
    backend: str = "auto",
) -> tuple[str, str]:
    """The name of what computes the rows of q and k, and why.

    >>> chosen_backend(torch.zeros(1, 1, 4, 8), torch.zeros(1, 1, 4, 8), backend="chunked")
    ('chunked', 'it was asked for')
    """
    inputs = check(
        q,
        k,
        None,
        scale=None,
        causal=False,
        key_lengths=None,
        mask=mask,
        bias=bias,
        window=None,
        softcap=softcap,
        key_bias=key_bias,
        wanted=STATISTICS,
    )
    return backend_for(inputs, backend)


def backend_for(inputs: AttentionInputs, backend: str) -> tuple[str, str]:
    """What `chosen_backend` says, of inputs that were checked."""
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}; it is '{backend}'")
    against = _against_triton(inputs)
    if backend == "auto":
        return ("chunked", against) if against else ("triton", "the inputs are on a GPU")
    if backend == "triton" and against not in (None, _on(inputs)):
        raise ValueError(f"backend 'triton' cannot be used here: {against}; give 'auto' or 'chunked'")
    return (
        backend,
        "it was asked for",
    )  # where the inputs must be is for the kernel to say: it may be interpreted


def _against_triton(inputs: AttentionInputs) -> str | None:
    """Why the Triton kernel cannot take these inputs; None if it can."""
    source = inputs.source
    floats = [term for term in (inputs.mask, inputs.bias, inputs.key_bias) if term is not None]
    if inputs.softcap is not None and any(term.dtype != torch.bool for term in floats):
        return "the kernel adds no bias after a soft-cap"
    if source.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        return f"the kernel does not compute in {source.dtype}"
    if not _triton_there():
        return "triton is not installed"
    if source.device.type != "cuda":
        return _on(inputs)
    if _capability(source.device) < (8, 0):
        return "the kernel needs a GPU of compute capability 8.0"
    if source.shape[0] > 65535:
        return "the kernel takes at most 65,535 sequences"
    return None


def _on(inputs: AttentionInputs) -> str:
    return f"the inputs are on {inputs.source.device.type}"


@cache
def _triton_there() -> bool:
    return find_spec("triton") is not None


@cache
def _capability(device: torch.device) -> tuple[int, int]:
    return torch.cuda.get_device_capability(device)
