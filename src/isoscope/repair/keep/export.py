"""A repair on disk: `repair.json` says what it is, `repair.safetensors` has its tensors in float64.

Neither can run code. The format: ``steps`` is a list of ``{"map": …}``, the tensors of step i are named
``i.mean``, ``i.scale`` and so on; docs/repair.md tells what each map does with them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from isoscope.errors import IsoscopeError
from isoscope.repair.keep.maps import MAPS, Map, name_of, shape_of, tensors_of
from isoscope.repair.keep.repair import Repair
from isoscope.results.store import write_whole

FORMAT = "isoscope repair 1"
CONFIG, TENSORS = "repair.json", "repair.safetensors"


def save_repair(repair: Repair, folder: str | Path) -> Path:
    """Write a repair into a folder, which is made; gives the folder."""
    folder = Path(folder)
    tensors = {
        f"{place}.{name}": tensor.contiguous()
        for place, step in enumerate(repair.steps)
        for name, tensor in tensors_of(step).items()
    }
    config = {
        "format": FORMAT, "name": repair.name, "steps": [{"map": name_of(step)} for step in repair.steps],
        "takes": repair.width, "gives": repair.gives, "affine": repair.is_affine,
        "invertible": repair.is_invertible, "vectors": repair.n, "left out": repair.left_out,
        "notes": list(repair.notes), "facts": dict(repair.facts),
    }  # fmt: skip
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / TENSORS, save_tensors(tensors))
        write_whole(folder / CONFIG, (json.dumps(config, indent=1, ensure_ascii=False) + "\n").encode())
    except OSError as reason:
        raise IsoscopeError(
            f"cannot write the repair to '{folder}': {reason.strerror or reason}."
        ) from reason
    return folder


def load_repair(folder: str | Path) -> Repair:
    """Read a repair that `save_repair` wrote."""
    folder = Path(folder)
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        tensors = load_tensors((folder / TENSORS).read_bytes())
    except FileNotFoundError as reason:
        raise IsoscopeError(
            f"no repair at '{folder}': {Path(str(reason.filename)).name} is missing; "
            "`isoscope repair … --export` writes one."
        ) from reason
    except (OSError, ValueError, SafetensorError) as reason:
        raise IsoscopeError(f"cannot read the repair at '{folder}': {reason}.") from reason
    if not isinstance(config, Mapping) or config.get("format") != FORMAT:
        raise IsoscopeError(f"'{folder}' holds no repair of this version; expected the format '{FORMAT}'.")
    try:
        steps: list[Map] = []
        for place, each in enumerate(config["steps"]):
            kind: Any = MAPS[each["map"]]
            own = {field.name: tensors[f"{place}.{field.name}"].double() for field in fields(kind)}
            steps.append(kind(**own))
        counts = (int(config["vectors"]), int(config["left out"]))
        made = Repair(str(config["name"]), tuple(steps), *counts, tuple(config["notes"]), config["facts"])
        fits = (made.width, made.gives) == (config["takes"], config["gives"])
        chained = all(shape_of(one)[1] == shape_of(two)[0] for one, two in pairwise(steps))
    except (KeyError, TypeError, ValueError, IndexError) as reason:
        raise IsoscopeError(
            f"the repair at '{folder}' is damaged: {reason!r} is missing or wrong."
        ) from reason
    if not (fits and chained):
        raise IsoscopeError(f"the repair at '{folder}' is damaged: its tensors do not fit {CONFIG}.")
    return made
