"""Launches the fused Triton pass of `attention_tiles` over every block of queries of every head.

Tile sizes are chosen by hand, from the width and the dtype. A mask is packed once before (`attention_marks`).
Nothing here waits for the device.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from isoscope.geometry.attention import AttentionRows, hidden_at_most
from isoscope.kernels.attention.chunked import chunked
from isoscope.kernels.attention.inputs import STATISTICS, AttentionInputs
from isoscope.kernels.attention.marks import marks_kernel
from isoscope.kernels.attention.tiles import rows_kernel

INTERPRETED = not isinstance(rows_kernel, triton.JITFunction)  # TRITON_INTERPRET=1: on a CPU, for tests
PRECISION = (
    "tf32x3"  # of float32: three TF32 products, nearer to float64 than one float32 sum, 5 times as fast
)
SLICE = 32  # of the width, in float32: longer ones lose half a digit
_LOG2E = math.log2(math.e)
_COSTLY = frozenset({"collision", "score_variance", "first_key", "distance"})
SPLIT = 128  # the most dimensions of queries in float32 that are split into three blocks of bfloat16
_READY: dict[tuple[object, ...], Any] = {}  # calls made before: what runs them, and their numbers
_MOST_READY = 1024


class Tiles(NamedTuple):
    """How the kernel cuts its work; `registers` is the most a thread may have, None for any number."""

    queries: int
    keys: int
    warps: int
    stages: int
    registers: int | None = None


def tiles_for(inputs: AttentionInputs) -> Tiles:
    """Tile sizes for these inputs; a block of queries is no longer than the queries are.

    Of 64 × 64 four blocks share a multiprocessor: while one multiplies, others take powers. It was the
    fastest at 2k, 8k and 32k tokens, as its four warps wait least for one another. Of 88 to 128 registers a
    thread 112 were the fastest, by 3 to 5 % over 128: the compiler's order of instructions is a better one.
    For heads of at most 64 dimensions 96 are, by 3 % over 112.
    """
    assert inputs.q is not None
    least = max(16, triton.next_power_of_2(inputs.shape[2]))
    if _split(inputs):
        return Tiles(min(64, least), 64, 4, 2)
    if inputs.q.dtype == torch.float32:
        return Tiles(min(64, least), 128, 4, 3)
    if inputs.q.shape[-1] > 128:
        return Tiles(min(64, least), 64, 4, 2)
    return Tiles(min(64, least), 64, 4, 2, 112 if inputs.q.shape[-1] > 64 else 96)


def _split(inputs: AttentionInputs) -> bool:
    """Whether queries in float32 meet keys in bfloat16: three products of bfloat16 then lose nothing."""
    q, k = inputs.q, inputs.k
    assert q is not None
    assert k is not None
    return q.dtype == torch.float32 and k.dtype == torch.bfloat16 and q.shape[-1] <= SPLIT


def fused(inputs: AttentionInputs, tiles: Tiles | None = None) -> AttentionRows:
    """The rows of `inputs` (q and k in float32, float16 or bfloat16, on a GPU), in float32.

    Queries may be in float32 where keys are not.
    """
    b, h, t, s = inputs.shape
    q, k = inputs.q, inputs.k
    assert q is not None
    assert k is not None
    if not (q.is_cuda or INTERPRETED):
        raise ValueError(f"the triton backend needs inputs on a GPU; they are on {q.device}: give 'chunked'")
    if b * h * t * s == 0:
        return chunked(inputs)
    if k.dtype != q.dtype and not _split(inputs):
        k = k.to(q.dtype)
        inputs = replace(inputs, k=k)
    out = torch.empty((len(STATISTICS), b, h, t), device=q.device)
    if q.is_cuda and q.device.index != torch.cuda.current_device():
        with torch.cuda.device(q.device):
            _launch(inputs, q, k, tiles, out)
    else:
        _launch(inputs, q, k, tiles, out)
    lse, entropy, largest, collision, top, variance, first, visible, distance = out.unbind()
    wanted = inputs.wanted
    if not wanted >= _COSTLY:
        nan = torch.full((), math.nan, device=q.device).expand(b, h, t)
        collision = collision if "collision" in wanted else nan
        variance = variance if "score_variance" in wanted else nan
        first = first if "first_key" in wanted else nan
        distance = distance if "distance" in wanted else nan
    count = visible.view(torch.int32)
    return AttentionRows(lse, entropy, largest, collision, top, variance, first, count, distance)


def _launch(inputs: AttentionInputs, q: Tensor, k: Tensor, tiles: Tiles | None, out: Tensor) -> None:
    """Run the kernel; where nothing is added or cut and such a call was made before, at once.

    That spares finding the kernel and its numbers, 65 of 150 µs a call: what they depend on is in `kind`.
    """
    if inputs.key_lengths is None and inputs.mask is None and inputs.bias is None and inputs.key_bias is None:
        kind = (
            q.shape, k.shape, q.stride(), k.stride(), q.data_ptr() % 16, k.data_ptr() % 16, q.dtype, k.dtype,
            q.device,
            inputs.scale, inputs.causal, inputs.window, inputs.softcap, inputs.wanted, tiles,
        )  # fmt: skip
        ready = _READY.get(kind)
        if ready is None:
            kernel, grid, numbers = _first_launch(inputs, q, k, tiles, out)
            if len(_READY) >= _MOST_READY:
                _READY.clear()
            if not INTERPRETED:
                _READY[kind] = (kernel[grid], numbers)
        else:
            run, numbers = ready
            run(q, k, q, q, q, out, out, out, out, out, out, *numbers)
    else:
        _first_launch(inputs, q, k, tiles, out)


def _first_launch(
    inputs: AttentionInputs, q: Tensor, k: Tensor, tiles: Tiles | None, out: Tensor
) -> tuple[Any, tuple[int, int, int], tuple[Any, ...]]:
    """Find the kernel and run it: it, its grid, and all its arguments that are not tensors."""
    b, h, t, s = inputs.shape
    e = q.shape[-1]
    tiles = tiles or tiles_for(inputs)
    split, single = _split(inputs), q.dtype == torch.float32
    width = min(max(16, triton.next_power_of_2(e)), SLICE if single and not split else 256)
    lengths = out if inputs.key_lengths is None else inputs.key_lengths.contiguous()
    mask, bias, key_bias = (_readable(term) for term in (inputs.mask, inputs.bias, inputs.key_bias))
    marks: tuple[Tensor, ...] = (out,) * 4
    steps, same = (0, 0), False
    if mask is not None:
        marks, steps, same = _marks(inputs, mask, lengths, tiles)
    first = 0
    if inputs.causal and inputs.window is not None:
        first = min(max(max(inputs.offset, 0) - inputs.window + 1, 0), s - 1)
    scale, cap = inputs.scale, inputs.softcap or 1.0
    tensors = (q, k, *(q if term is None else term for term in (mask, bias, key_bias)), *marks, lengths, out)
    numbers = (
        *q.stride()[:2], *k.stride()[:2],
        *(stride for term in (mask, bias, key_bias) for stride in _strides(term)), *steps,
        h // k.shape[1], t, s, e, inputs.offset, inputs.window or 0, first,
        scale * _LOG2E, 1 / scale, cap / scale, 2 * _LOG2E * scale / cap,
        *q.stride()[2:], *k.stride()[2:],
        inputs.causal,
        inputs.window is not None,
        inputs.key_lengths is not None,
        0 if inputs.mask is None else 1 if inputs.mask.dtype == torch.bool else 2,
        mask is not None and mask.stride(2) == 0,
        same,
        bias is not None,
        bias is not None and bias.stride(2) == 0,
        key_bias is not None,
        key_bias is not None and key_bias.stride(2) == 0,
        inputs.softcap is not None,
        "collision" in inputs.wanted,
        "score_variance" in inputs.wanted,
        "first_key" in inputs.wanted,
        "distance" in inputs.wanted,
        tiles.queries,
        tiles.keys,
        width,
        triton.cdiv(e, width),
        e % width == 0,
        e % width == 0 and s % tiles.keys == 0 and t % tiles.queries == 0,
        split,
        PRECISION if single and not split else "ieee",
        INTERPRETED,
    )  # fmt: skip
    grid = (triton.cdiv(t, tiles.queries), h, b)
    kernel = rows_kernel[grid](
        *tensors, *numbers, num_warps=tiles.warps, num_stages=tiles.stages, maxnreg=tiles.registers
    )
    return kernel, grid, numbers


def _readable(term: Tensor | None) -> Tensor | None:
    """A term as the kernel reads it: booleans as bytes, float64 as float32."""
    if term is not None and term.dtype == torch.bool:
        return term.view(torch.uint8)
    return term.float() if term is not None and term.dtype == torch.float64 else term


def _strides(term: Tensor | None) -> tuple[int, ...]:
    return (0, 0, 0, 0) if term is None else term.stride()


def _marks(
    inputs: AttentionInputs, mask: Tensor, lengths: Tensor, tiles: Tiles
) -> tuple[tuple[Tensor, ...], tuple[int, int], bool]:
    """What the kernel reads of a mask: words, counts, reach, firsts.

    Then how far the next batch and the next head are, and whether it is the same for all queries.
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
    return (words, counts, reach, firsts), steps, same
