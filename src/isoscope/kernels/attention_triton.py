"""Launches the fused Triton pass of `attention_tiles` over every block of queries of every head.

Tile sizes are chosen by hand, from the width and the dtype. A mask is packed once before (`attention_marks`).
Nothing here waits for the device.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from isoscope.geometry.attention import AttentionRows, hidden_at_most
from isoscope.kernels.attention_chunked import chunked
from isoscope.kernels.attention_inputs import STATISTICS, AttentionInputs
from isoscope.kernels.attention_marks import marks_kernel
from isoscope.kernels.attention_tiles import rows_kernel

INTERPRETED = not isinstance(rows_kernel, triton.JITFunction)  # TRITON_INTERPRET=1: on a CPU, for tests
PRECISION = (
    "tf32x3"  # of float32: three TF32 products, nearer to float64 than one float32 sum, 5 times as fast
)
SLICE = 32  # of the width, in float32: longer ones lose half a digit
_LOG2E = math.log2(math.e)
_PLANES = tuple(name for name in STATISTICS if name != "visible")  # the order in which the kernel stores


class Tiles(NamedTuple):
    """How the kernel cuts its work; `registers` is the most a thread may have, None for any number."""

    queries: int
    keys: int
    warps: int
    stages: int
    registers: int | None = None


def tiles_for(inputs: AttentionInputs) -> Tiles:
    """Tile sizes for these inputs; a block of queries is no longer than the queries are.

    With 128 registers a thread 16 warps share a multiprocessor: while one multiplies, others take powers.
    """
    assert inputs.q is not None
    least = max(16, triton.next_power_of_2(inputs.shape[2]))
    if inputs.q.dtype == torch.float32:
        return Tiles(min(64, least), 128, 4, 3)
    if inputs.q.shape[-1] > 128:
        return Tiles(min(64, least), 64, 4, 2)
    if inputs.shape[2] >= 8192:
        return Tiles(128, 64, 8, 2, 128)
    return Tiles(min(64, least), 64, 4, 2, 128)


def fused(inputs: AttentionInputs, tiles: Tiles | None = None) -> AttentionRows:
    """The rows of `inputs` (q and k in float32, float16 or bfloat16, on a GPU), in float32."""
    b, h, t, s = inputs.shape
    q, k = inputs.q, inputs.k
    assert q is not None
    assert k is not None
    if not (q.is_cuda or INTERPRETED):
        raise ValueError(f"the triton backend needs inputs on a GPU; they are on {q.device}: give 'chunked'")
    if b * h * t * s == 0:
        return chunked(inputs)
    tiles = tiles or tiles_for(inputs)
    e = q.shape[-1]
    width = min(max(16, triton.next_power_of_2(e)), SLICE if q.dtype == torch.float32 else 256)
    out = torch.empty((len(_PLANES), b, h, t), device=q.device)
    visible = torch.empty((b, h, t), dtype=torch.int32, device=q.device)
    lengths = visible if inputs.key_lengths is None else inputs.key_lengths.contiguous()
    mask, bias, key_bias = (_readable(term) for term in (inputs.mask, inputs.bias, inputs.key_bias))
    terms = [v for term in (mask, bias, key_bias) for v in _strided(q, term)]
    first = 0
    if inputs.causal and inputs.window is not None:
        first = min(max(max(inputs.offset, 0) - inputs.window + 1, 0), s - 1)
    scale, cap = inputs.scale, inputs.softcap or 1.0
    elsewhere = q.is_cuda and q.device.index != torch.cuda.current_device()
    with torch.cuda.device(q.device) if elsewhere else nullcontext():
        marks, same = (
            ((visible,) * 4 + (0, 0), False) if mask is None else _marks(inputs, mask, lengths, tiles)
        )
        rows_kernel[(triton.cdiv(t, tiles.queries) * b * h,)](
            q, *q.stride(), k, *k.stride(), *terms, *marks, lengths, out, visible,
            h, h // k.shape[1], t, s, e, inputs.offset, inputs.window or 0, first,
            scale * _LOG2E, 1 / scale, cap / scale, 2 * _LOG2E * scale / cap,
            causal=inputs.causal,
            windowed=inputs.window is not None,
            cut=inputs.key_lengths is not None,
            mask_kind=0 if inputs.mask is None else 1 if inputs.mask.dtype == torch.bool else 2,
            mask_flat=mask is not None and mask.stride(2) == 0,
            marks_flat=same,
            biased=bias is not None,
            bias_flat=bias is not None and bias.stride(2) == 0,
            key_biased=key_bias is not None,
            key_bias_flat=key_bias is not None and key_bias.stride(2) == 0,
            capped=inputs.softcap is not None,
            want_collision="collision" in inputs.wanted,
            want_variance="score_variance" in inputs.wanted,
            want_first="first_key" in inputs.wanted,
            want_distance="distance" in inputs.wanted,
            queries=tiles.queries,
            keys=tiles.keys,
            width=width,
            slices=triton.cdiv(e, width),
            even=e % width == 0,
            precision=PRECISION if q.dtype == torch.float32 else "ieee",
            interpreted=INTERPRETED,
            num_warps=tiles.warps,
            num_stages=tiles.stages,
            maxnreg=tiles.registers,
        )  # fmt: skip
    found = dict(zip(_PLANES, out.unbind(), strict=True))
    for name in {"collision", "score_variance", "first_key", "distance"} - inputs.wanted:
        found[name] = torch.full((), math.nan, device=q.device).expand(b, h, t)
    return AttentionRows(visible=visible, **found)


def _readable(term: Tensor | None) -> Tensor | None:
    """A term as the kernel reads it: booleans as bytes, float64 as float32."""
    if term is not None and term.dtype == torch.bool:
        return term.view(torch.uint8)
    return term.float() if term is not None and term.dtype == torch.float64 else term


def _strided(stand_in: Tensor, term: Tensor | None) -> tuple[Any, ...]:
    return (stand_in, 0, 0, 0, 0) if term is None else (term, *term.stride())


def _marks(
    inputs: AttentionInputs, mask: Tensor, lengths: Tensor, tiles: Tiles
) -> tuple[tuple[Any, ...], bool]:
    """What the kernel reads of a mask, and whether it is the same for all queries.

    That is: words, counts, reach, firsts, and how far the next batch and the next head are.
    """
    b, h, t, s = inputs.shape
    cut, windowed = inputs.key_lengths is not None, inputs.window is not None
    same = mask.stride(2) == 0 and not inputs.causal and not windowed
    batches = b if mask.stride(0) or cut else 1
    heads = h if mask.stride(1) else 1
    rows = 1 if same else t
    queries = min(tiles.queries, triton.next_power_of_2(rows))
    blocks, columns = triton.cdiv(rows, queries), triton.cdiv(s, tiles.keys)
    number = batches * heads
    words = torch.empty(number * rows * columns * 4, dtype=torch.int32, device=mask.device)
    sizes = (number * rows, number * blocks * 2, number)
    zeros = torch.zeros(sum(sizes), dtype=torch.int32, device=mask.device)
    counts, reach, firsts = torch.split_with_sizes(zeros, sizes)
    assert inputs.mask is not None
    floating = inputs.mask.dtype != torch.bool
    hidden = max(hidden_at_most(inputs.mask.dtype), torch.finfo(torch.float32).min) if floating else 0.0
    marks_kernel[(number * blocks * columns,)](
        mask, *mask.stride(), lengths, words, counts, reach, firsts,
        heads, rows, s, inputs.offset, inputs.window or 0, hidden,
        causal=inputs.causal,
        windowed=windowed,
        cut=cut,
        floating=floating,
        queries=queries,
        keys=tiles.keys,
        num_warps=4,
    )  # fmt: skip
    steps = (heads if batches > 1 else 0, 1 if heads > 1 else 0)
    return (words, counts, reach, firsts, *steps), same
