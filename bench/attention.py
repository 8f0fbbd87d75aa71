"""Attention rows against SDPA's own forward, and against other ways to the same statistics.

On a GPU: bfloat16, 16 heads of width 128, causal, 2k to 128k tokens; every contender is timed in turn in the
same run, on the device's own clock. `--tune` times other tile sizes.

On a CPU, one thread, GPT-2's shape (12 layers, 12 heads, width 768), 128 to 4,096 tokens, every contender in
a process of its own: CPU seconds, and memory above what the model takes. There are two comparisons, which
answer different questions:

- tools: the entropy of every head over the same batches, from a model: `observe`, hooks on the eager matrix,
  nnsight and TransformerLens, against a plain (SDPA) forward. `observe` includes its survey, which runs the
  model once or twice on the first 64 tokens. "survey done" is without it; "counterfactual" has a second pass
  over the same sequences.
- kernels: the queries and keys of one layer, no model: rows with all nine statistics, against eager code that
  computes all nine.

The two can disagree. Eager code for nine statistics makes the matrix and passes a dozen times over it, out of
the cache. Hooks for one statistic pass twice over a matrix that an eager model has made anyway. Earlier
versions of this file timed kernels alone, at 4,096 tokens, where eager code is at its worst.

What is off from the definition in float64 is not timed. A tool that is not installed is skipped.
TransformerLens is read by its `HookedTransformer`, which version 4 removed: install `transformer-lens<4`.
Writes bench/results/attention-<device>.json.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.attention import SDPBackend, sdpa_kernel

from isoscope import observe
from isoscope.geometry import attention as definition
from isoscope.geometry.attention import AttentionRows
from isoscope.kernels.attention.rows import (
    SHIFT_VARIANCE,
    STATISTICS,
    attention_rows,
    chosen_backend,
    variant_rows,
)
from isoscope.models.source import Model
from isoscope.run.observe.observe import look

CORE = ("lse", "entropy", "largest", "max_score", "visible", "collision", "first_key")
RESULTS = Path(__file__).parent / "results"
LENGTHS, BATCHES, ROUNDS, VOCABULARY = (128, 512, 2048, 4096), 1, 1, 50257  # on a CPU
WITHOUT = ("normalised_entropy_without_drift", "sink_mass_without_drift", "drift_share")
Tool = Callable[[list[Tensor]], Tensor | None]  # the entropy of every head, [layers, heads]


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


def batches(tokens: int, many: int = BATCHES) -> list[Tensor]:
    generator = torch.Generator().manual_seed(tokens)
    return [
        torch.randint(VOCABULARY, (max(1, 2048 // tokens), tokens), generator=generator) for _ in range(many)
    ]


def gpt2(attention: str) -> nn.Module:
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(0)
    config = GPT2Config(n_positions=max(LENGTHS))  # 12 layers, 12 heads, width 768
    config._attn_implementation = attention
    model = GPT2Model(config).eval()
    with torch.no_grad():  # attention of a fresh model is flat
        for block in model.h:
            block.attn.c_attn.weight[:, : 2 * config.n_embd] *= 4
    return model


def entropies(weights: Tensor) -> Tensor:
    """The entropy of every head, summed over sequences and queries; the fastest way that torch has."""
    return torch.special.entr(weights).sum((0, 2, 3), dtype=torch.float64)


def naive(model: nn.Module, many: list[Tensor]) -> Tensor:
    """The definition, in float64, from the queries and keys of the model: [layers, heads]."""
    found = torch.zeros(len(model.h), model.config.n_head, dtype=torch.float64)

    def add(layer: int, output: Tensor) -> None:
        q, k, _ = (part.unflatten(2, (-1, 64)).transpose(1, 2) for part in output.chunk(3, -1))
        found[layer] += definition.attention_rows(q, k, causal=True).entropy.sum((0, 2))

    hooks = [
        block.attn.c_attn.register_forward_hook(lambda _, __, output, i=i: add(i, output))
        for i, block in enumerate(model.h)
    ]
    with torch.no_grad():
        for ids in many:
            model(ids)
    for hook in hooks:
        hook.remove()
    return found / sum(ids.numel() for ids in many)


def plain() -> Tool:
    model = gpt2("sdpa")

    def work(many: list[Tensor]) -> None:
        with torch.no_grad():
            for ids in many:
                model(ids)

    return work


def observed(measures: tuple[str, ...], *, surveyed: bool = False) -> Tool:
    model, survey = gpt2("sdpa"), None
    if surveyed:
        survey = look(Model(model, "gpt2"), batches(128)[0])

    def work(many: list[Tensor]) -> Tensor:
        table = observe(model, many, measures=measures, heads=True, survey=survey).frame()
        mine = table[(table.measure == "entropy") & table["head"].notna()].sort_values(["layer", "head"])
        return torch.tensor(mine.value.to_numpy(float)).view(12, 12)

    return work


def hooked() -> Tool:
    model, found = gpt2("eager"), torch.zeros(12, 12, dtype=torch.float64)

    def add(layer: int, weights: Tensor) -> None:
        found[layer] += entropies(weights)

    for layer, block in enumerate(model.h):
        block.attn.register_forward_hook(lambda _, __, out, i=layer: add(i, out[1]))

    def work(many: list[Tensor]) -> Tensor:
        found.zero_()
        with torch.no_grad():
            for ids in many:
                model(ids)
        return found / sum(ids.numel() for ids in many)

    return work


def with_nnsight() -> Tool:
    from nnsight import NNsight

    model = NNsight(gpt2("eager"))

    def work(many: list[Tensor]) -> Tensor:
        found = torch.zeros(12, 12, dtype=torch.float64)
        with torch.no_grad():
            for ids in many:
                with model.trace(ids):
                    for layer in range(12):
                        found[layer] += entropies(model.h[layer].attn.output[1])
        return found / sum(ids.numel() for ids in many)

    return work


def with_transformer_lens() -> Tool:
    from transformer_lens import HookedTransformer, HookedTransformerConfig
    from transformer_lens.pretrained.weight_conversions import convert_gpt2_weights

    config = HookedTransformerConfig(
        n_layers=12, d_model=768, n_ctx=max(LENGTHS), d_head=64, n_heads=12, d_vocab=VOCABULARY,
        act_fn="gelu_new", normalization_type="LN", device="cpu",
    )  # fmt: skip
    model, source = HookedTransformer(config).eval(), gpt2("eager")
    head = SimpleNamespace(weight=source.wte.weight)
    state = convert_gpt2_weights(SimpleNamespace(transformer=source, lm_head=head), config)
    model.load_state_dict(state, strict=False)
    found = torch.zeros(12, 12, dtype=torch.float64)

    def add(layer: int, weights: Tensor) -> None:
        found[layer] += entropies(weights)

    hooks = [(f"blocks.{i}.attn.hook_pattern", lambda x, hook, i=i: add(i, x)) for i in range(12)]

    def work(many: list[Tensor]) -> Tensor:
        found.zero_()
        with torch.no_grad():
            for ids in many:
                model.run_with_hooks(ids, return_type=None, fwd_hooks=hooks)
        return found / sum(ids.numel() for ids in many)

    return work


TOOLS: dict[str, Callable[[], Tool]] = {
    "plain forward": plain,
    "isoscope": lambda: observed(("entropy",)),
    "isoscope, survey done": lambda: observed(("entropy",), surveyed=True),
    "isoscope, counterfactual": lambda: observed(("entropy", *WITHOUT), surveyed=True),
    "eager, hooks": hooked,
    "nnsight": with_nnsight,
    "TransformerLens": with_transformer_lens,
}
NEEDS = {"nnsight": "nnsight", "TransformerLens": "transformer_lens"}


def rows_alone(name: str, tokens: int) -> Callable[[], object]:
    """One call of a kernel: queries and keys of a layer, made ready."""
    torch.manual_seed(0)
    q, k, _ = heads(max(1, 2048 // tokens), 12, tokens, 64, "cpu", torch.float32)
    steady = q.mean((0, 2), keepdim=True)
    turned = steady * torch.randn(1, 1, tokens, 64)
    variants = [(*STATISTICS, SHIFT_VARIANCE), STATISTICS]

    def shifted(shift: Tensor) -> Callable[[], object]:
        return lambda: variant_rows(q, k, [shift, shift.flip(-1)], causal=True, wanted_of=variants)

    return {
        "rows": lambda: attention_rows(q, k, causal=True),
        "rows, entropy": lambda: attention_rows(q, k, causal=True, wanted=("entropy",)),
        "variants, one mean query": shifted(steady),
        "variants, by position": shifted(turned),
        "SDPA": lambda: F.scaled_dot_product_attention(q, k, k, is_causal=True),
        "eager": lambda: eager(q, k),
    }[name]


KERNELS = (
    "rows", "rows, entropy", "variants, one mean query", "variants, by position", "SDPA", "eager",
)  # fmt: skip


def alone(name: str, lengths: list[int]) -> None:
    """In a process of its own: CPU seconds at every length, and how far the memory rose."""
    few = batches(128, 1)[0][:2]
    tool = TOOLS[name]() if name in TOOLS else None
    if tool is not None:
        tool([few[:, :16]])  # what torch itself loads
        agree(name, tool, few)
    out = []
    for tokens in lengths:
        many = batches(tokens)
        work = rows_alone(name, tokens) if tool is None else lambda many=many: tool(many)
        rounds = 5 if tool is None else ROUNDS
        gc.collect()
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")  # forget the worst so far
        before, best = memory("VmRSS"), math.inf
        with torch.no_grad():
            for _ in range(rounds):
                start = time.process_time()
                work()
                best = min(best, time.process_time() - start)
        out.append({"seconds": best, "mib": memory("VmHWM") - before})
    print(json.dumps(out))


def agree(name: str, tool: Tool, few: Tensor) -> None:
    """Refuse to time what is off from the definition."""
    found = tool([few])
    off = 0.0 if found is None else float((found - naive(gpt2("sdpa").double(), [few])).abs().max())
    if not off < 1e-4:
        sys.exit(f"{name}: the entropy of a head is off by {off:.1e} nats, so it is not timed")


def timed_alone(name: str, lengths: tuple[int, ...]) -> list[dict[str, float]] | None:
    """The result of `alone`; None where the tool is not installed."""
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        print(f"{name:26} skipped: {NEEDS[name]} is not installed")
        return None
    words = ["--alone", name, "--tokens", *map(str, lengths)]
    told = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, *words],
        capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    if told.returncode:
        sys.exit(f"{name}: {told.stderr.strip().splitlines()[-1]}")
    found: list[dict[str, float]] = json.loads(told.stdout.splitlines()[-1])
    said = "   ".join(f"{each['seconds']:9.3f} {each['mib']:6.0f}" for each in found)
    print(f"{name:26} {said}", flush=True)
    return found


def on_cpu(lengths: tuple[int, ...]) -> list[dict[str, Any]]:
    print(f"{'CPU s, MiB above rest':26} " + "   ".join(f"{t:9} tokens" for t in lengths))
    found = {name: timed_alone(name, lengths) for name in (*TOOLS, *KERNELS)}
    plain = found["plain forward"]
    assert plain is not None
    rows: list[dict[str, Any]] = []
    for i, tokens in enumerate(lengths):
        here = {name: each[i] for name, each in found.items() if each is not None}
        print(f"{tokens} tokens, of the plain forward: ", end="")
        print(
            ", ".join(
                f"{name} {here[name]['seconds'] / plain[i]['seconds']:.2f}×" for name in TOOLS if name in here
            )
        )
        rows.append({"tokens": tokens, "sequences": len(batches(tokens)[0]), "batches": BATCHES, **here})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tune", action="store_true", help="time other tile sizes too")
    parser.add_argument("--tokens", type=int, nargs="+", default=LENGTHS, help="on a CPU: these lengths")
    parser.add_argument("--alone", choices=(*TOOLS, *KERNELS), help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.alone:
        torch.set_num_threads(1)
        alone(told.alone, told.tokens)
        return
    torch.manual_seed(0)
    gpu = torch.cuda.is_available()
    device, dtype = ("cuda", torch.bfloat16) if gpu else ("cpu", torch.float32)
    name = torch.cuda.get_device_name() if gpu else "cpu"
    off = check(device, dtype)
    q, k, _ = heads(1, 1, 4, 128, device, dtype)
    print(f"{name}, torch {torch.__version__}, {chosen_backend(q, k)[0]}; off by {off:.1e} at 700 tokens")
    rows = on_gpu(told.tune) if gpu else on_cpu(tuple(told.tokens))
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"attention-{name.lower().replace(' ', '-')}.json"
    kept = {"device": name, "torch": torch.__version__, "off": off, "rows": rows}
    file.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"written to {file}")


if __name__ == "__main__":
    main()
