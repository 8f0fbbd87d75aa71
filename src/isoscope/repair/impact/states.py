"""One vector a text at every layer that is asked for, all in one walk over the texts.

The vectors are those of `states.States`, kept in float32: a text is met in several tasks and by every repair,
and to run the model again for each would cost more than the memory does. Texts that the model's tokenizer
makes the same are one input, have one vector, and count as one wherever texts are held apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from isoscope.data.keys import content_keys
from isoscope.data.text import Text
from isoscope.errors import IsoscopeError, unknown_name
from isoscope.models.inputs import open_data
from isoscope.models.source import Model
from isoscope.models.survey import Survey
from isoscope.repair.impact.outcome import Array
from isoscope.repair.states import vectors_at
from isoscope.run.observe.observe import Progress, look
from isoscope.sites import Site, select

POOLS = ("mean", "cls", "last")
ALL, ENDS = "all", "ends"


@dataclass(frozen=True, eq=False)
class Inputs:
    """Texts as a model takes them: a key for each, equal for those that are one input."""

    model: Model
    data: Text
    keys: Mapping[str, int]
    found: Survey
    sites: tuple[Site, ...]
    pool: str


@dataclass(frozen=True, eq=False)
class Encoded:
    """Vectors by site, [inputs, d], and the row that each text has."""

    states: Mapping[Site, Tensor]
    rows: Mapping[str, int]

    def at(self, site: Site, texts: Sequence[str]) -> Tensor:
        """The vectors of these texts at a site, [n, d] in float32."""
        return self.states[site][torch.tensor([self.rows[text] for text in texts], dtype=torch.long)]

    def exact(self, site: Site, texts: Sequence[str]) -> Array:
        """The same as an array in float64."""
        return self.at(site, texts).double().numpy()


def open_inputs(
    model: Model, texts: Sequence[str], layers: str = ENDS, pool: str = "mean",
    max_length: int | None = None, batch_size: int = 32,
) -> Inputs:  # fmt: skip
    """Make texts ready for a model, each once; `layers` are numbers, globs, ``all``, or ``ends``.

    ``ends`` is what enters the first block, and the output or, where nothing norms it, the last layer.
    """
    if pool not in POOLS:
        raise unknown_name("way to pool", pool, POOLS)
    if model.takes != "text":
        raise IsoscopeError(f"'{model.name}' takes {model.takes}; impact judges models of text.")
    every = list(dict.fromkeys(texts))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "texts.jsonl"
        file.write_text("".join(json.dumps({"text": text}) + "\n" for text in every), encoding="utf-8")
        data = open_data(
            str(file), model, limit=None, max_length=max_length, batch_size=batch_size, pack=False,
            special=True, first=True
        )  # fmt: skip
    assert isinstance(data, Text)
    rows = data.sequences
    if len(rows) != len(every):
        lost = f"{len(every) - len(rows)} of {len(every)} texts hold nothing that '{model.name}' reads"
        raise IsoscopeError(f"{lost}; take them out.")
    keys = [int(content_keys(row[None], data.seed)) for row in rows]
    found = look(model, next(iter(data)))
    sites = chosen_sites(tuple(found.shapes), layers, pool)
    return Inputs(model, data, dict(zip(every, keys, strict=True)), found, sites, pool)


def chosen_sites(there: Sequence[Site], layers: str, pool: str = "mean") -> tuple[Site, ...]:
    """The sites that are asked for; ``output`` is the last layer where nothing norms it.

    Pooled by ``cls``, ``ends`` and ``all`` begin at layer 1: before the first block the first token of all
    texts is one and the same vector.
    """
    last = Site("output") if Site("output") in there else max(there, key=lambda site: site.layer or 0)
    begun = Site("layer", 1 if pool == "cls" and Site("layer", 1) in there else 0)
    if layers == ALL:
        return tuple(site for site in there if begun.layer == 0 or site != Site("layer", 0))
    if layers == ENDS:
        return tuple(dict.fromkeys([begun, last]))
    named = (str(last) if part.strip() == "output" else part for part in layers.split(","))
    return select(there, ",".join(named))


def encode(inputs: Inputs, progress: Progress | None = None) -> Encoded:
    """Run the model once over all texts."""
    parts: dict[Site, list[Tensor]] = {site: [] for site in inputs.sites}
    keys: list[int] = []
    for batch in inputs.data:
        found = vectors_at(inputs.model, inputs.found, inputs.sites, inputs.pool, batch)
        for site, (vectors, _) in found.items():
            parts[site].append(vectors)
        keys += batch.keys.tolist()
        if progress is not None:
            progress(len(keys), inputs.data.size)
    row = {key: place for place, key in enumerate(keys)}
    states = {site: torch.cat(own) for site, own in parts.items()}
    return Encoded(states, {text: row[key] for text, key in inputs.keys.items()})
