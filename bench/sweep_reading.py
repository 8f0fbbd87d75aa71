"""Reading a sweep: what it takes to read 100, 300 and 1,000 checkpoints of 48 layers of 32 heads together.

    python bench/sweep_reading.py [CHECKPOINTS …]

Writes synthetic run folders (rows of sites and of heads, and samples of positions and heads, as a unit of a
sweep keeps them) to a temporary folder, which is removed afterwards, and times what comes after measuring:
the unit `between` (CKA, correlations, change points) and the page. Much of it is the same for any number of
checkpoints, so time over checkpoints falls whatever happens: growth is told by what a further checkpoint
takes. Writes bench/results/sweep-reading-cpu.json.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import save

from isoscope.kinds.sweep.page import content_of
from isoscope.measures.table import MEASURES
from isoscope.results.row import COLUMNS
from isoscope.results.store import RunFolder, open_run
from isoscope.results.trajectory import trajectory
from isoscope.run.provenance import new_run
from isoscope.sweeps.together.between import summarise
from isoscope.sweeps.work.samples import POINTS, SIZE, sample_file

LAYERS, HEADS, INNER = 48, 32, 64
OF_LAYERS = (
    "mean_cosine_between",
    "mean_cosine",
    "relative_drift",
    "mean_norm",
    "isoscore",
    "effective_rank",
)
OF_HEADS = (
    "normalised_entropy", "drift_share", "sink_mass", "query_relative_drift", "key_relative_drift",
    "query_key_cosine",
)  # fmt: skip
KEPT = 16  # heads of which queries and keys are kept
RESULTS = Path(__file__).parent / "results"


def rows(step: int, random: np.random.Generator) -> pd.DataFrame:
    """The rows of one checkpoint: every measure of every site, and of every head."""
    places = [("layer", layer, None, m) for layer in range(LAYERS + 1) for m in OF_LAYERS]
    for layer in range(1, LAYERS + 1):
        places += [("attention", layer, head, m) for m in OF_HEADS for head in (None, *range(HEADS))]
    kind, layer, head, measure = zip(*places, strict=True)
    level = np.sqrt(step) / 1000 + 0.01 * random.standard_normal(len(places))
    table = pd.DataFrame({"kind": kind, "layer": layer, "head": head, "measure": measure, "value": level})
    beside = {
        "run": "r",
        "model": "m",
        "revision": "",
        "step": step,
        "n": 4096,
        "null": 0.0,
        "note": "",
        "tag": "",
        "p": None,
        "arm": "",
        "seed": None,
    }
    beside |= {"setting": None, "about": ""}
    return table.assign(**beside, low=level - 0.02, high=level + 0.02)[list(COLUMNS)].astype(COLUMNS)


def sample(random: np.random.Generator) -> dict[str, np.ndarray]:
    """What a checkpoint keeps beside its rows."""
    kept: dict[str, np.ndarray] = {}
    for site in ("layer.0", f"layer.{LAYERS // 2}", f"layer.{LAYERS}", "output"):
        kept[f"layers/{site}/places"] = np.arange(SIZE)
        kept[f"layers/{site}/products"] = random.standard_normal(SIZE * (SIZE - 1) // 2).astype(np.float32)
    for head in range(KEPT):
        for part in ("query", "key"):
            kept[f"heads/attention.1/{head}/{part}"] = random.standard_normal((POINTS, INNER)).astype(
                np.float32
            )
    return kept


def made(out: Path, checkpoints: int) -> RunFolder:
    """A run folder of so many checkpoints."""
    folder = open_run(out, new_run("sweep", "synthetic", {"checkpoints": checkpoints}, MEASURES))
    (out / "samples").mkdir()
    random = np.random.default_rng(0)
    for number in range(checkpoints):
        unit = f"step{1000 * number}"
        sample_file(folder, unit).write_bytes(save(sample(random)))
        folder.write(unit, rows(1000 * number, random), {"findings": []})
    return folder


def timed(checkpoints: int) -> dict[str, float]:
    """Seconds of each part, rows of heads a measure, and the size of the page."""
    with tempfile.TemporaryDirectory() as place:
        folder = made(Path(place) / "run", checkpoints)
        start = time.perf_counter()
        total = trajectory(folder).total
        found = time.perf_counter()
        summarise(folder)
        summed = time.perf_counter()
        text = content_of(folder).page()
        drawn = time.perf_counter()
    return {
        "checkpoints": checkpoints,
        "rows": total,
        "rows of heads a measure": checkpoints * LAYERS * HEADS,
        "find": found - start,
        "between": summed - found,
        "page": drawn - summed,
        "all": drawn - start,
        "page, MB": len(text) / 1e6,
        "memory at most, GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def main() -> None:
    asked = [int(given) for given in sys.argv[1:]] or [100, 300, 1000]
    timed(10)  # what is imported and compiled once
    found = []
    for checkpoints in asked:
        found.append(timed(checkpoints))
        print(", ".join(f"{name} {value:,.3g}" for name, value in found[-1].items()), flush=True)
    heads = ("rows", "between", "page", "all", "a checkpoint", "page")
    print("\ncheckpoints " + " ".join(f"{head:>13}" for head in heads))
    for each in found:
        apiece = 1000 * each["all"] / each["checkpoints"]
        cells = [f"{each['rows']:,}", *(f"{each[part]:.1f} s" for part in ("between", "page", "all"))]
        cells += [f"{apiece:.1f} ms", f"{each['page, MB']:.1f} MB"]
        print(f"{each['checkpoints']:>11,} " + " ".join(f"{cell:>13}" for cell in cells))
    more = [1000 * (b["all"] - a["all"]) / (b["checkpoints"] - a["checkpoints"]) for a, b in pairwise(found)]
    told = ", ".join(f"{each:.1f} ms" for each in more)
    print(f"\na further checkpoint takes {told}: the same each time where reading grows linearly")
    RESULTS.mkdir(exist_ok=True)
    body = {"runs": found, "a further checkpoint, ms": more}
    (RESULTS / "sweep-reading-cpu.json").write_text(json.dumps(body, indent=2) + "\n")


if __name__ == "__main__":
    main()
