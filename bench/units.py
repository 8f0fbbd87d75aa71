"""Intervals by document and by chunk on real text, and how often disjoint halves of a corpus agree.

    python bench/units.py MODEL articles=wiki.test.txt.xz books=gutenberg.jsonl --length 128

MODEL is a model with its tokenizer. Every corpus is text whose documents isoscope knows: articles under
headings, or records. Every document is read twice, with its chunks as one unit and with every chunk as a
unit. Then the corpus is halved at random by document, `--halvings` times. Halves agree where their readings
differ by no more than √(a² + b²), a and b the reach of their intervals towards each other: of sound 95 %
intervals, 95 % do.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import isoscope
from isoscope.data.batch import Batch
from isoscope.data.text import Text
from isoscope.run.observe.observation import Observation

MEASURES = ("mean_cosine_between", "drift", "relative_drift", "mean_norm", "entropy", "sink_mass")
AT_ONCE = 32  # chunks


def by_unit(data: Text) -> dict[int, list[Batch]]:
    """Batches of every document, in the order of the documents' first chunks."""
    found: dict[int, list[Batch]] = {}
    for batch in data:
        assert batch.units is not None
        for unit in batch.units.unique().tolist():
            rows = torch.nonzero(batch.units == unit).flatten()
            found.setdefault(unit, []).append(batch.take(rows))
    return found


def observed(model: Any, batches: Iterable[Batch]) -> Observation:
    """What is seen of one document, without a counterfactual, which would need another pass."""
    return isoscope.observe(model, list(batches), measures=MEASURES, counterfactual=False)


def joined(parts: Iterable[Observation]) -> pd.DataFrame:
    """The readings of several documents together, by site and measure."""
    rows = reduce(Observation.merge, parts).frame()
    rows = rows[rows["head"].isna() & ~((rows["kind"] == "layer") & (rows["layer"] == 0))]
    return rows.set_index(["kind", "layer", "measure"])[["value", "low", "high"]].astype(float)


def agreed(one: pd.DataFrame, other: pd.DataFrame) -> pd.Series:
    """Whether two halves agree, by site and measure; missing where one has no interval."""
    apart = other["value"] - one["value"]
    up = np.where(apart > 0, one["high"] - one["value"], one["value"] - one["low"])
    down = np.where(apart > 0, other["value"] - other["low"], other["high"] - other["value"])
    reach = pd.Series(np.hypot(up, down), index=one.index)
    return (apart.abs() <= reach).astype(float).where(reach.notna())


def halved(parts: list[Observation], times: int) -> pd.DataFrame:
    """How often random halves of the documents agree, by measure: over all halvings and sites."""
    random, found = np.random.default_rng(0), list[pd.Series]()
    for _ in range(times):
        order = random.permutation(len(parts))
        halves = (order[: len(parts) // 2], order[len(parts) // 2 :])
        found.append(agreed(*(joined(parts[i] for i in half) for half in halves)))
    return pd.concat(found, axis=1).mean(axis=1)


def table(name: str, model: Any, data: Text, halvings: int) -> dict[str, Any]:
    """What one corpus shows, by measure."""
    documents = list(by_unit(data).values())
    read: dict[str, list[Observation]] = {
        "document": [observed(model, batches) for batches in documents],
        "chunk": [observed(model, (replace(batch, units=None) for batch in each)) for each in documents],
    }
    whole = {how: joined(parts) for how, parts in read.items()}
    rate = {how: halved(parts, halvings) for how, parts in read.items()}
    measures = {}
    for measure in MEASURES:
        at = whole["document"].index.get_level_values("measure") == measure
        last = whole["document"].index[at][-1]
        width = {how: (each["high"] - each["low"])[at] for how, each in whole.items()}
        measures[measure] = {
            "site": f"{last[0]}.{last[1]}" if not pd.isna(last[1]) else last[0],
            **{how: [round(float(x), 4) for x in each.loc[last]] for how, each in whole.items()},
            "times as wide": round(math.exp(float(np.log(width["document"] / width["chunk"]).mean())), 2),
            "agree": {how: round(float(each[at].mean()), 3) for how, each in rate.items()},
        }
    sizes = [sum(map(len, each)) for each in documents]
    return {
        "corpus": name, "documents": len(sizes), "chunks": sum(sizes), "chunks of a document": sorted(sizes),
        "unit": data.facts()["units"], "halvings": halvings, "measures": measures
    }  # fmt: skip


def markdown(found: Mapping[str, Any]) -> str:
    """The table of a corpus for people."""
    lines = [
        "| measure | at | by chunk | by document | times as wide | halves agree by chunk | by document |",
        "|---|---|---|---|---|---|---|",
    ]
    for measure, each in found["measures"].items():
        chunk, document = (
            f"{value} [{low}, {high}]" for value, low, high in (each["chunk"], each["document"])
        )
        agree = each["agree"]
        lines.append(
            f"| `{measure}` | {each['site']} | {chunk} | {document} | {each['times as wide']} "
            f"| {agree['chunk']:.2f} | {agree['document']:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Read every corpus and print its table, then all numbers."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    given.add_argument("model")
    given.add_argument("corpora", nargs="+", metavar="NAME=FILE")
    given.add_argument("--length", type=int, default=128)
    given.add_argument("--limit", type=int, default=None)
    given.add_argument("--halvings", type=int, default=200)
    given.add_argument("--out", type=Path)
    asked = given.parse_args()
    model = isoscope.load(asked.model)
    made = []
    for corpus in asked.corpora:
        name, _, file = corpus.partition("=")
        data = isoscope.text(
            file, model.tokenizer, limit=asked.limit, max_length=asked.length, batch_size=AT_ONCE
        )
        found = table(name, model, data, asked.halvings)
        print(f"{name}: {found['documents']} documents, {found['chunks']} chunks\n\n{markdown(found)}\n")
        made.append(found)
    if asked.out is not None:
        asked.out.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
