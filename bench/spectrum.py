"""Spectra of query-key matrices through e×e against the eigenvalues of d×d: d = 2048, 16 heads of width 128.

The fast way is timed whole: all 16 heads, eigenvalues, singular values and every reading. Of the slow way,
`torch.linalg.eigvals` of the explicit matrix in float64, one head is timed and the 16 are said to be 16 times
that; it gives eigenvalues alone. What disagrees is not timed. Writes bench/results/spectrum-cpu.json.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from isoscope.geometry import spectra as definition
from isoscope.geometry.propagation import signal_propagation, simulate_propagation
from isoscope.geometry.spectra import QkSpectrum, factors
from isoscope.kernels.spectra import qk_spectrum

HEADS, WIDTH, INNER, LENGTH, WALKS = 16, 2048, 128, 512, 4096
RESULTS = Path(__file__).parent / "results"


def weights(heads: int, width: int, inner: int) -> tuple[Tensor, Tensor, Tensor]:
    """wq, wk and γ as a trained model might have them: bfloat16, of variance 1/d."""
    wq, wk = (torch.randn(heads, width, inner).mul(width**-0.5).bfloat16() for _ in range(2))
    return wq, wk, 1 + 0.1 * torch.randn(width)


def apart(one: Tensor, other: Tensor) -> float:
    """How far two sets of eigenvalues are apart at most, paired as they lie nearest."""
    distance = (one[:, None] - other[None]).abs().numpy()
    return float(distance[linear_sum_assignment(distance)].max())


def check() -> float:
    """The largest difference from the definition at d = 96; refuses to go on if it is too large."""
    wq, wk, gamma = weights(3, 96, 16)
    found, right = qk_spectrum(wq, wk, gamma=gamma), definition.qk_spectrum(wq, wk, gamma=gamma)
    worst = max(apart(one, other) for one, other in zip(found.eigenvalues, right.eigenvalues, strict=True))
    for field in fields(QkSpectrum):
        if field.name != "eigenvalues":
            mine, exact = getattr(found, field.name), getattr(right, field.name)
            worst = max(worst, float((mine - exact).abs().max()))
    if not worst < 1e-10:
        sys.exit(f"the spectrum is off by {worst}: not timed")
    return worst


def seconds(work: Callable[[], object], times: int) -> float:
    """The best of several runs."""
    best = math.inf
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    torch.manual_seed(0)
    off = check()
    wq, wk, gamma = weights(HEADS, WIDTH, INNER)
    found = qk_spectrum(wq, wk, gamma=gamma)
    matrix = definition.qk_matrix(wq[0], wk[0], gamma=gamma)[0]
    values = torch.linalg.eigvals(matrix)
    inside = values[values.abs().argsort(descending=True)][:INNER]
    distance = apart(found.eigenvalues[0], inside)
    if not distance < 1e-10:
        sys.exit(f"the eigenvalues at d = {WIDTH} are {distance} apart: not timed")
    fast = seconds(lambda: qk_spectrum(wq, wk, gamma=gamma), 7)
    one_head = seconds(lambda: torch.linalg.eigvals(matrix), 3)
    ratio = HEADS * one_head / fast
    print(f"query-key spectra, d = {WIDTH}, {HEADS} heads of {INNER}, {torch.get_num_threads()} threads")
    print(f"  through e×e, all readings, {HEADS} heads    {fast:8.3f} s   off by {max(off, distance):.1e}")
    print(f"  d×d eigenvalues, one head timed     {one_head:8.3f} s")
    print(
        f"  that × {HEADS}, by multiplication         {HEADS * one_head:8.3f} s   "
        f"{ratio:.0f}× slower (at least 100)"
    )
    moments = (found.trace, found.trace_square, found.frobenius_square)
    closed = seconds(lambda: signal_propagation(*moments, LENGTH), 5)
    parts = factors(wq, wk, gamma=gamma)
    drawn = seconds(lambda: simulate_propagation(parts, LENGTH, walks=WALKS), 1)
    print(f"signal propagation, {LENGTH} positions, {HEADS} heads")
    print(f"  closed form                         {closed:8.4f} s")
    print(f"  simulation, {WALKS} last inputs a head  {drawn:8.3f} s")
    kept = {
        "device": "cpu",
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "off": max(off, distance),
        "width": WIDTH,
        "heads": HEADS,
        "inner": INNER,
        "fast_all_heads_seconds": fast,
        "slow_one_head_seconds": one_head,
        "ratio_with_one_slow_head_times_heads": ratio,
        "propagation": {
            "length": LENGTH,
            "walks": WALKS,
            "closed_seconds": closed,
            "simulated_seconds": drawn,
        },
    }
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / "spectrum-cpu.json"
    file.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"written to {file}")


if __name__ == "__main__":
    main()
