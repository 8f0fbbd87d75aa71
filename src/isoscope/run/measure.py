"""A model over data as a run: what is asked, measured once, and kept in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

from isoscope.measures.table import choose
from isoscope.models.inputs import open_data
from isoscope.models.source import fingerprint, load
from isoscope.results.place import default_out
from isoscope.results.store import RunFolder, open_run
from isoscope.run.observe.memory import DEFAULT
from isoscope.run.observe.observe import look, observe
from isoscope.run.provenance import new_run
from isoscope.run.telling import SILENT, Telling
from isoscope.sites import select


def measure(
    model: str,
    data: str = "embedded",
    *,
    limit: int | None = 256,
    max_length: int | None = None,
    batch_size: int = 16,
    device: str | None = None,
    dtype: str = "float32",
    measures: Sequence[str] | None = None,
    layers: str = "*",
    heads: bool = False,
    counterfactual: bool = True,
    config: str | None = None,
    revision: str | None = None,
    pack: bool = True,
    tokens: str = "auto",
    special: bool = False,
    first: bool = False,
    trust_remote_code: bool = False,
    seed: int = 0,
    memory: float = DEFAULT,
    covariance_rows: float = 1.0,
    out: str | PathLike[str] | None = None,
    telling: Telling = SILENT,
) -> RunFolder:
    """Measure a model over data into a run folder; what is there is not measured again.

    Options are those of `load`, `open_data` and `observe`. Without `out` the folder is `runs/NAME-ID`.
    """
    chosen = choose(measures)
    loaded = load(
        model,
        revision=revision,
        device=device,
        dtype=dtype,
        config=config,
        trust_remote_code=trust_remote_code,
    )
    batches = open_data(
        data,
        loaded,
        limit=limit,
        max_length=max_length,
        batch_size=batch_size,
        pack=pack,
        special=special,
        first=first,
        tokens=tokens,
        seed=seed,
    )
    found = look(loaded, next(iter(batches)))
    select((*found.shapes, *found.attention), layers)  # before a folder is made for it
    known = loaded.facts()
    question = {key: known[key] for key in ("model", "revision", "dtype")}
    question["weights"] = fingerprint(loaded.module)
    question |= batches.facts() | {"layers": layers, "measures": [m.name for m in chosen], "memory": memory}
    question |= {"heads": heads, "counterfactual": counterfactual, "covariance rows": covariance_rows}
    run = new_run("measure", loaded.name, question, chosen)
    folder = open_run(out or default_out(loaded.name, run.id), run)
    if folder.has(loaded.name):
        telling.note(f"{folder.path} has these rows already; nothing is measured again")
        return folder
    with telling.bar(f"measuring {loaded.name}") as progress:
        seen = observe(
            loaded,
            batches,
            measures=measures,
            layers=layers,
            heads=heads,
            counterfactual=counterfactual,
            memory=memory,
            covariance_rows=covariance_rows,
            progress=progress,
            survey=found,
        )
        rows, points = seen.rows(run.id), seen.points()
    folder.write(loaded.name, rows, seen.known(), points)
    return folder
