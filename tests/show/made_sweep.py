"""Hand-made sweeps: a folder with steps, heads, findings, failed units and what is read of all together."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from isoscope.results.points import Points, points_frame
from isoscope.results.row import Row
from isoscope.results.run import Run
from isoscope.results.store import RunFolder, open_run
from isoscope.results.trajectory import BETWEEN, FAILED
from tests.show.made import EXPLAINED, row

STEPS = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]
JUMP = 64
SAME = "holds the same weights as step1"
TOLD = {
    **EXPLAINED,
    "jump": {"family": "changes", "title": "jump", "says": "The level changes."},
    "cka_between": {"family": "checkpoints", "title": "CKA of two checkpoints", "says": "How alike."},
}


def named(step: int) -> str:
    return f"step{step}"


def look(step: int, *, layers: int = 3, heads: int = 2) -> list[Row]:
    """One checkpoint: all layers jump at the step `JUMP`."""
    made = []
    place = {"model": "small", "revision": named(step), "step": step}
    for layer in range(layers + 1):
        cosine = 0.1 + 0.05 * layer + 0.3 * (step >= JUMP)
        made += [
            row("mean_cosine_between", cosine, half=0.01, layer=layer, **place),
            row("relative_drift", math.sqrt(cosine), half=0.01, layer=layer, **place),
            row("not_finite", 0.0, layer=layer, **place | {"null": math.nan}),
        ]
        for head in (None, *range(heads)) if layer else ():
            at = place | {"kind": "attention", "layer": layer, "head": head}
            made += [
                row("normalised_entropy", 1 - 1e-4 * step, half=0.01, **at | {"null": 1.0}),
                row("query_relative_drift", 0.2 + 5e-4 * step, **at),
                row("key_relative_drift", 0.1, **at),
                row("query_key_cosine", 0.5 * (-1) ** (head or 0), **at),
            ]
    return made


def weighed(step: int, layers: int = 2) -> list[Row]:
    """The weights of one checkpoint."""
    place = {"model": "small", "revision": named(step), "step": step, "null": math.nan}
    made = []
    for layer in range(1, layers + 1):
        for head in (None, 0, 1):
            at = place | {"kind": "query_key", "layer": layer, "head": head}
            made += [row("trace", 0.1 * layer + 1e-3 * step, **at), row("frobenius", 1.0 + layer, **at)]
    for kind in ("input_vocabulary", "output_vocabulary_centred"):
        made.append(row("mean_cosine_between", 0.1 + 1e-4 * step, **place | {"kind": kind, "layer": None}))
    return [*made, row("norm_weight_size", 1.0 + step, **place | {"kind": "norm", "layer": None})]


def between(steps: list[int], layers: int = 3, heads: int = 2) -> list[Row]:
    """What is read of all together, as `run.sweep.between` writes it."""
    own = {"model": "small", "revision": "", "step": None}
    made = []
    for layer in range(layers + 1):
        at = own | {"layer": layer, "null": math.nan, "n": len(steps)}
        ends = {"low": 32.0, "high": 64.0, "note": "by +0.3, p = 0.002"}
        made.append(row("jump_in_mean_cosine_between", float(JUMP), **at | ends))
        made.append(
            row("turn_in_relative_drift", 128.0, **at | {"low": 64.0, "high": 256.0, "note": "p = 0.004"})
        )
    made.append(row("stray_in_relative_drift", 8.0, **own | {"layer": 1, "note": "by +1, p = 0.002"}))
    for layer in (0, layers):
        for j, later in enumerate(steps):
            for i, earlier in enumerate(steps[:j]):
                pair = own | {"revision": named(earlier), "step": later, "layer": layer}
                made.append(row("cka_between", math.nan if i == 1 else 1 / (1 + j - i), **pair))
            if later != steps[-1]:
                value = 0.95 if later >= 512 else 0.4
                made.append(row("cka_last_checkpoint", value, **own | {"step": later, "layer": layer}))
    for layer in range(1, layers + 1):
        for head in (None, *range(heads)):
            for drift in ("query", "key"):
                for end, value in (("", -0.9), ("_changes", -0.2)):
                    at = own | {"kind": "attention", "layer": layer, "head": head, "n": len(steps)}
                    note = f"p = {0.0002 if not end else 0.4}; as good as 9 independent checkpoints"
                    made.append(row(f"entropy_with_{drift}_drift{end}", value, **at | {"note": note}))
    return made


def moving(steps: list[int], heads: int = 2, points: int = 6) -> list[Points]:
    random = np.random.default_rng(0)
    made = []
    for how in ("shared", "centred", "random"):
        for head in range(heads):
            for step in steps:
                for series in ("query", "key"):
                    x, y = (0.1 + step / 1000) * random.standard_normal((2, points)) + 0.01 * step
                    at = ("steps " + how, "attention", 1, head)
                    made.append(Points(*at, f"{series} {step}", x.tolist(), y.tolist()))
            made.append(Points("steps " + how, "attention", 1, head, "share", [0.5], [0.2]))
    return made


def finding(
    step: int, kind: str = "twin", words: str = "holds the same weights as step1"
) -> dict[str, object]:
    return {"checkpoint": named(step), "step": step, "kind": kind, "words": words}


def a_sweep(
    path: Path,
    steps: list[int] | None = None,
    *,
    findings: dict[int, list[dict[str, object]]] | None = None,
    failed: dict[int, str] | None = None,
    weights: bool = False,
    together: bool = True,
    title: str = "small",
    layers: int = 3,
    heads: int = 2,
) -> RunFolder:
    """The folder of a sweep."""
    steps = STEPS if steps is None else steps
    run = Run("sweep", title, {"model": title}, TOLD, {"isoscope": "0.1.0"}, "2026-01-01T00:00:00Z")
    folder = open_run(path / "sweep", run)
    for step in steps:
        found = (findings or {}).get(step, [])
        words = "; ".join(str(one["words"]) for one in found)
        facts = {"findings": found, "checkpoint": {"name": named(step), "step": step}, "notes": []}
        if step in (failed or {}):
            reason = (failed or {})[step]
            lost = row(FAILED, math.nan, kind="checkpoint", step=step, note=reason, model="small")
            folder.write(named(step), [lost], {**facts, "failed": reason})
            continue
        made = [*look(step, layers=layers, heads=heads), *(weighed(step) if weights else [])]
        marked = [Row(**{**vars(one), "note": words or one.note}) for one in made]
        folder.write(named(step), marked, facts)
    if together:
        measured = [step for step in steps if step not in (failed or {})]
        known = {"series looked at for changes": 40, "explained": {}, "notes": []}
        points = points_frame(moving(measured, heads))
        folder.write(BETWEEN, between(measured, layers, heads), known, points)
    return folder
