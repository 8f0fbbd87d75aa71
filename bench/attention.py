"""Attention rows against SDPA's own forward, and against eager code that computes the same statistics.

On a GPU: bfloat16, 16 heads of width 128, causal, 2k to 128k tokens; every contender is timed in turn in the
same run, on the device's own clock. On a CPU: 4k tokens, 8 heads of width 64. What is not exact is not timed.
`--tune` times other tile sizes. Writes bench/results/attention-<device>.json.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812
from torch.nn.attention import SDPBackend, sdpa_kernel

from isoscope.geometry import attention as definition
from isoscope.geometry.attention import AttentionRows
from isoscope.kernels.attention.rows import attention_rows, chosen_backend

CORE = ("lse", "entropy", "largest", "max_score", "visible", "collision", "first_key")
RESULTS = Path(__file__).parent / "results"


def eager(q: Tensor, k: Tensor) -> AttentionRows:
    """The same statistics of causal attention as one would write them, with the whole matrix."""
    if q.is_cuda and q.dtype == torch.bfloat16:  # the tensor cores' product, not rounded back to bfloat16
        flat = [part.flatten(0, 1) for part in (q, k)]
        scores = torch.bmm(flat[0], flat[1].mT, out_dtype=torch.float32).view(*q.shape[:3], k.shape[2])
    else:
        scores = q.float() @ k.float().mT
    scores = scores * q.shape[-1] ** -0.5
    t, s = scores.shape[-2:]
    visible = torch.ones(t, s, dtype=torch.bool, device=q.device).tril()
    count = visible.sum(-1)
    masked = scores.masked_fill(~visible, -math.inf)
    weights = masked.softmax(-1)
    zeroed = scores.masked_fill(~visible, 0.0)
    mean = zeroed.sum(-1) / count
    place = torch.arange(s, device=q.device)
    return AttentionRows(
        lse=masked.logsumexp(-1),
        entropy=-torch.xlogy(weights, weights).sum(-1),
        largest=weights.amax(-1),
        collision=weights.square().sum(-1),
        max_score=masked.amax(-1),
        score_variance=(zeroed - mean[..., None]).masked_fill(~visible, 0.0).square().sum(-1) / count,
        first_key=weights[..., 0],
        visible=count.int().expand(mean.shape),
        distance=(weights * (place[:, None] - place).abs()).sum(-1),
    )


def heads(b: int, h: int, t: int, e: int, device: str, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """q, k and v; q twice as long, so that attention is neither flat nor one key."""
    q, k, v = (torch.randn(b, h, t, e, device=device, dtype=dtype) for _ in range(3))
    return q * 2, k, v


def check(device: str, dtype: torch.dtype) -> float:
    """The largest difference from the definition at 700 tokens; refuses to go on if it is too large."""
    q, k, _ = heads(1, 4, 700, 128, device, dtype)
    right, worst = definition.attention_rows(q, k, causal=True), 0.0
    for work in (lambda: attention_rows(q, k, causal=True), lambda: eager(q, k)):
        found = work()
        for field in fields(AttentionRows):
            mine, exact = getattr(found, field.name).double(), getattr(right, field.name).double()
            scale = 700.0 if field.name == "distance" else 1.0
            off = float((mine - exact).abs().max()) / scale
            worst = max(worst, off)
            if not off < 2e-5:
                sys.exit(f"{field.name} is off by {off}: not timed")
    return worst


def device_times(works: dict[str, Callable[[], object]], rounds: int, inner: int) -> dict[str, float]:
    """Median milliseconds of each, taken in turn; a sleep before lets the host run ahead of the device."""
    for work in works.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(2_000_000)
            start.record()
            for _ in range(inner):
                work()
            stop.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(stop) / inner)
    return {name: statistics.median(found) for name, found in times.items()}


def peak(work: Callable[[], object]) -> float | None:
    """MiB of device memory that `work` needs at its worst, above what is there; None if it does not fit."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    try:
        work()
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return None
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def on_gpu(tune: bool) -> list[dict[str, Any]]:
    print(
        f"{'tokens':>7} {'batch':>5} {'SDPA':>9} {'flash':>9} {'rows':>9} {'/SDPA':>6} {'/flash':>6}", end=" "
    )
    print(f"{'core':>9} {'/SDPA':>6} {'eager':>10} {'/rows':>6}   MiB: rows, eager   (times in ms)")
    rows = [one_length(t, tune) for t in (2048, 8192, 32768, 131072)]
    return [*rows, terms_on_gpu()]


def one_length(t: int, tune: bool) -> dict[str, Any]:
    b = max(1, 16384 // t)
    q, k, v = heads(b, 16, t, 128, "cuda", torch.bfloat16)
    works: dict[str, Callable[[], object]] = {
        "sdpa": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        "rows": lambda: attention_rows(q, k, causal=True),
        "flash": lambda: flash(q, k, v),
        "core": lambda: attention_rows(q, k, causal=True, wanted=CORE),
    }
    rounds, inner = {2048: (50, 10), 8192: (50, 3), 32768: (15, 1), 131072: (3, 1)}[t]
    row: dict[str, Any] = {"tokens": t, "batch": b} | device_times(works, rounds, inner)
    row["rows_mib"] = peak(works["rows"])
    row["eager_mib"] = peak(lambda: eager(q, k)) if t <= 32768 else None
    fits = row["eager_mib"] is not None
    row["eager"] = device_times({"eager": lambda: eager(q, k)}, 5, 1)["eager"] if fits else None
    against = f"{row['eager']:10.2f} {row['eager'] / row['rows']:5.0f}×" if fits else f"{'does not fit':>17}"
    print(
        f"{t:7} {b:5} {row['sdpa']:9.3f} {row['flash']:9.3f} {row['rows']:9.3f} "
        f"{row['rows'] / row['sdpa']:6.2f} {row['rows'] / row['flash']:6.2f} {row['core']:9.3f} "
        f"{row['core'] / row['sdpa']:6.2f} {against}   {row['rows_mib']:.1f}"
        + (f", {row['eager_mib']:.0f}" if fits else "")
    )
    if tune and t <= 32768:
        row["tiles"] = tuned(q, k, row["sdpa"], inner)
    return row


def terms_on_gpu() -> dict[str, Any]:
    """What a mask or a bias costs at 4 × 4k tokens: against plain causal rows, and SDPA with the mask."""
    q, k, v = heads(4, 16, 4096, 128, "cuda", torch.bfloat16)
    mask = torch.ones(4, 1, 4096, 4096, dtype=torch.bool, device="cuda").tril()
    floats = torch.where(mask, 0.0, torch.finfo(torch.bfloat16).min).bfloat16()
    key_bias = torch.randn(1, 16, 1, 4096, device="cuda")
    whole = {"q": q.float(), "k": k.float()}
    times = device_times(
        {
            "causal": lambda: attention_rows(q, k, causal=True),
            "causal, key bias": lambda: attention_rows(q, k, causal=True, key_bias=key_bias),
            "boolean mask": lambda: attention_rows(q, k, mask=mask),
            "floating mask": lambda: attention_rows(q, k, mask=floats),
            "window of 512": lambda: attention_rows(q, k, causal=True, window=512),
            "not causal": lambda: attention_rows(q, k),
            "float32, causal": lambda: attention_rows(**whole, causal=True),
            "SDPA, causal": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True),
            "SDPA, boolean mask": lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
            "SDPA, not causal": lambda: F.scaled_dot_product_attention(q, k, v),
        },
        20,
        3,
    )
    print("\n4 × 4096 tokens, 16 heads of width 128, ms:")
    for name, value in times.items():
        print(f"  {name:20} {value:8.3f}   {value / times['causal']:5.2f} of causal rows")
    few_q, few_k = q[:1, :1, :64], k[:1, :1, :64]
    attention_rows(few_q, few_k, causal=True)  # compiles
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(200):
        attention_rows(few_q, few_k, causal=True)
    times["host_us"] = (time.perf_counter() - start) / 200 * 1e6
    print(f"  host time a call     {times['host_us']:8.0f} µs")
    return {"tokens": 4096, "batch": 4, "terms": times}


def tuned(q: Tensor, k: Tensor, sdpa: float, inner: int) -> list[dict[str, Any]]:
    """Times of other tile sizes, best first."""
    from isoscope.kernels.attention.check import check as inputs_of
    from isoscope.kernels.attention.inputs import STATISTICS
    from isoscope.kernels.attention.triton import Tiles, fused

    inputs = inputs_of(
        q, k, None, scale=None, causal=True, key_lengths=None, mask=None, bias=None, window=None,
        softcap=None, key_bias=None, wanted=STATISTICS,
    )  # fmt: skip
    found = []
    for queries, keys, stages, registers in product((64, 128), (64, 128), (2, 3), (None, 112, 128)):
        warps = queries // 16
        tiles = Tiles(queries, keys, warps, stages, registers)
        try:
            spent = device_times({"rows": lambda: fused(inputs, tiles)}, 7, inner)["rows"]  # noqa: B023
        except Exception as refusal:  # noqa: BLE001 whatever the compiler says, the next may do
            print(f"    {tiles}: {type(refusal).__name__}")
            continue
        found.append({"tiles": list(tiles), "ms": spent, "of_sdpa": spent / sdpa})
    found.sort(key=lambda row: row["ms"])
    for row in found[:8]:
        print(f"    {row['tiles']}  {row['ms']:8.3f} ms  {row['of_sdpa']:.2f} of SDPA")
    return found


def memory(field: str) -> float:
    """MiB of this process: VmRSS now, VmHWM at its worst."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def alone(name: str) -> None:
    """In a process of its own on the CPU: the best of three runs, and how far the memory rose."""
    torch.manual_seed(0)
    q, k, _ = heads(1, 8, 4096, 64, "cpu", torch.float32)
    work = {"chunked": lambda: attention_rows(q, k, causal=True), "eager": lambda: eager(q, k)}[name]
    torch.softmax(q[:, :1, :64] @ k[:, :1, :64].mT, -1)  # what torch itself loads
    Path("/proc/self/clear_refs").write_text("5")  # forget the worst so far
    before, best = memory("VmRSS"), math.inf
    for _ in range(3):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    print(json.dumps({"seconds": best, "mib": memory("VmHWM") - before}))


def on_cpu() -> list[dict[str, Any]]:
    found = {}
    for name in ("chunked", "eager"):
        told = subprocess.run(
            [sys.executable, __file__, "--alone", name], check=True, capture_output=True, text=True
        )
        found[name] = json.loads(told.stdout)
    mine, other = found["chunked"], found["eager"]
    print(f"4096 tokens, 8 heads of width 64, causal, float32, {torch.get_num_threads()} threads")
    print(f"  chunked   {mine['seconds']:8.3f} s  {mine['mib']:8.0f} MiB")
    print(
        f"  eager     {other['seconds']:8.3f} s  {other['mib']:8.0f} MiB   "
        f"{other['seconds'] / mine['seconds']:.1f}× slower (at least 5), "
        f"{other['mib'] / max(mine['mib'], 1):.0f}× the memory (at least 20)"
    )
    return [{"tokens": 4096, "heads": 8, "width": 64, "threads": torch.get_num_threads(), **found}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tune", action="store_true", help="time other tile sizes too")
    parser.add_argument("--alone", choices=("chunked", "eager"), help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.alone:
        alone(told.alone)
        return
    torch.manual_seed(0)
    gpu = torch.cuda.is_available()
    device, dtype = ("cuda", torch.bfloat16) if gpu else ("cpu", torch.float32)
    name = torch.cuda.get_device_name() if gpu else "cpu"
    off = check(device, dtype)
    q, k, _ = heads(1, 1, 4, 128, device, dtype)
    print(f"{name}, torch {torch.__version__}, {chosen_backend(q, k)[0]}; off by {off:.1e} at 700 tokens")
    rows = on_gpu(told.tune) if gpu else on_cpu()
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"attention-{name.lower().replace(' ', '-')}.json"
    kept = {"device": name, "torch": torch.__version__, "off": off, "rows": rows}
    file.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"written to {file}")


if __name__ == "__main__":
    main()
