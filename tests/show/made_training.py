"""A hand-made training run: numbers that rise, turn and break where asked; no model and no torch."""

from __future__ import annotations

import math

import pandas as pd

from isoscope.results.row import Row, frame
from isoscope.results.run import Run
from tests.show.made import EXPLAINED, row

WATCHED = {
    "not_a_number": "NaN or Inf was seen.",
    "rank_collapse": "Less than 0.1 of a sequence's norm is left.",
    "drift_takes_over": "More than 0.9 is the mean query's.",
}


def a_training(title: str = "small in training") -> Run:
    return Run(
        "training", title, {"model": "small"}, EXPLAINED, {"isoscope": "0.1.0"}, "2026-01-01T00:00:00Z"
    )


def look(step: int, *, layers: int = 3, heads: int = 2, broken: bool = False) -> list[Row]:
    """One look: the mean cosine has a peak at step 25; where it is broken, all but layer 0 is NaN."""
    made = []
    for layer in range(layers + 1):
        gone = broken and layer > 0
        cosine = math.nan if gone else 0.1 + 0.1 * layer * math.exp(-((math.log1p(step) - math.log(26)) ** 2))
        place = {"model": "small", "revision": "", "step": step, "layer": layer}
        made += [
            row("mean_cosine_between", cosine, half=0.01, **place),
            row("relative_drift", math.sqrt(cosine), **place),
            row("mean_norm", 10.0 + step, **place | {"null": math.nan}),
            row("not_finite", 64.0 if gone else 0.0, **place | {"n": 64}),
        ]
        for head in (None, *range(heads)) if layer else ():
            value = math.nan if gone else 1 - 0.001 * step - 0.01 * (head or 0)
            at = place | {"kind": "attention", "head": head, "null": 1.0}
            made += [
                row("normalised_entropy", value, half=0.01, **at),
                row("largest_score", 1.0 + step, **at),
            ]
    out = {"model": "small", "revision": "", "step": step, "kind": "output"}
    made.append(row("mean_cosine_between", math.nan if broken else 0.3, half=0.01, **out))
    own = {"model": "small", "revision": "", "step": step, "kind": "training", "null": math.nan, "n": 1}
    return [*made, row("loss", math.nan if broken else 5 / (1 + step), **own)]


def watched(steps: list[int], *, broken_from: int | None = None, **shape: int) -> pd.DataFrame:
    parts = [look(s, broken=broken_from is not None and s >= broken_from, **shape) for s in steps]
    return frame([one for part in parts for one in part])


def facts(
    steps: list[int], alarms: dict[int, list[dict[str, object]]] | None = None
) -> dict[str, dict[str, object]]:
    return {
        f"step {step:06d}": {
            "alarms": (alarms or {}).get(step, []),
            "watched": WATCHED,
            "explained": {"loss": {"family": "training", "title": "loss", "says": "Told by the loop."}},
        }
        for step in steps
    }


def alarm(step: int, name: str = "rank_collapse", site: str = "layer.2") -> dict[str, object]:
    return {"name": name, "step": step, "site": site, "words": f"{name} at step {step} at {site}"}
