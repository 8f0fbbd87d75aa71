"""Run folders of every kind for the tests of figures: planted numbers, no model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from isoscope.results.points import Points, points_frame
from isoscope.results.row import Row
from isoscope.results.run import Run
from isoscope.results.store import RunFolder, open_run
from tests.lab.test_contrast_fit import made as trials
from tests.show import made, made_sweep, made_training, made_weights
from tests.typed import frame

HOSTILE = "_a$b_c$<script>x</script>/\n%s"
BERT = "bert-base-uncased"
LOOKS = [0, 1, 2, 4, 8, 16, 64]


def clouds(layers: int = 2, heads: int = 2, size: int = 7) -> pd.DataFrame:
    """Queries and keys; head 1 of layer 2 lies furthest from the origin."""
    random, found = np.random.default_rng(0), []
    for picture in ("shared", "centred", "random"):
        for layer in range(1, layers + 1):
            for head in range(heads):
                for series in ("query", "key"):
                    x, y = random.standard_normal((2, size)) + 3 * layer * head
                    at = (picture, "attention", layer, head, series)
                    found.append(Points(*at, x.tolist(), y.tolist()))
                found.append(Points(picture, "attention", layer, head, "share", [0.5], [0.4]))
    return points_frame(found)


def block_rows(norms: tuple[str, ...] = ("post", "pre"), seeds: int = 3) -> list[Row]:
    """Biases 0, 20 and 200 of a block: the entropy falls with the bias, by seed a little differently."""
    found = []
    for norm in norms:
        for i, bias in enumerate((0, 20, 200)):
            for seed in range(seeds):
                at = {"model": f"{norm}, bias {bias}", "revision": f"seed {seed}"}
                for layer in (0, 1):
                    found.append(made.row("mean_cosine", 0.3 * i + 0.01 * seed, layer=layer, **at))
                    found.append(made.row("mean_norm", 10.0 + bias, layer=layer, **at))
                stage = {**at, "kind": "mlp_output", "layer": 1}
                found += [made.row("mean_cosine", 0.2, **stage), made.row("mean_norm", 2.0, **stage)]
                attention = {**at, "kind": "attention", "layer": 1}
                found.append(made.row("normalised_entropy", 1 - 0.1 * i - 0.01 * seed, **attention))
                for again in range(3):
                    passed = {**at, "kind": "iterated", "layer": again}
                    found.append(made.row("mean_norm", 10.0 + bias * (again == 0), **passed))
    return found


def planted(arm: str, seed: int, layer: int, at: float) -> float:
    return 1.0 - at + 0.4 * (arm == "qk-norm") + 0.001 * seed * (1 + layer)


def folder(path: Path, kind: str) -> RunFolder:
    """The folder of a run of this kind."""
    told = made.EXPLAINED
    match kind:
        case "sweep":
            return made_sweep.a_sweep(path)
        case "training":
            run = open_run(path / kind, made_training.a_training())
            facts = made_training.facts(LOOKS, {8: [made_training.alarm(8)]})
            for step in LOOKS:
                name = f"step {step:06d}"
                run.write(name, made_training.look(step), facts[name])
            return run
        case "contrast":
            rows = trials(planted, seeds=3)
            run = open_run(path / kind, Run("contrast", "arms", {"reference": "softmax"}, told))
            run.write("all", rows, {"place": 0, "arm": "softmax"})
            return run
        case "block":
            run = open_run(path / kind, Run("block", "block", {}, told))
            points = points_frame([
                Points("scores", "attention", 1, None, series, [-1.0, 0.0, 1.0], [0.1, 1.0, 0.0])
                for series in ("score", "within row")
            ])  # fmt: skip
            run.write("one", frame(block_rows()), {"norm": "post", "bias norm": 0.0, "seed": 0}, points)
            return run
    kept: dict[str, tuple[Run, list[Row], pd.DataFrame | None]] = {
        "measure": (made.a_run(), [*made.layered(depth=4), *made.attended(BERT, heads=2)], clouds()),
        "compare": (Run("compare", "a · b", {}, told), made.compared(), None),
        "cloud": (Run("cloud", "vectors", {}, told), made.clouds(), None),
        "weights": (
            made_weights.a_weights_run(),
            made_weights.weighed(),
            made_weights.pictures(2, 2).drop(columns="unit"),
        ),
    }
    run_, rows, points = kept[kind]
    run = open_run(path / kind, run_)
    run.write("m", frame(rows), {"notes": []}, points)
    return run


KINDS = ("measure", "compare", "cloud", "weights", "training", "sweep", "contrast", "block")
