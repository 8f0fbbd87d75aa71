"""What a run records of its tasks: which scores they have, their sizes, and hashes of what they hold."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from isoscope.repair.impact.tasks import Labelled, Pairs, Task


def measures_of(tasks: Sequence[Task], spoken: str = "") -> list[str]:
    """The scores that these tasks have, with those of hubs, and of a text that is `spoken`."""
    found = []
    for task in tasks:
        if isinstance(task, Pairs):
            bases = ["spearman", "pearson"]
        elif isinstance(task, Labelled):
            bases = ["accuracy" if each == "standardised" else f"accuracy_{each}" for each in task.readers]
        else:
            bases = ["recall_1", "recall_10", "reciprocal_rank"]
        found += [f"{base}.{task.name}" for base in bases]
    return [*found, "hub_skewness", "anti_hubs", *([f"perplexity.{spoken}"] if spoken else [])]


def digest(task: Task) -> dict[str, object]:
    """What fixes a task: its kind, how many units, and a hash of all it holds."""
    if isinstance(task, Pairs):
        parts = [*task.first, *task.second, *map(repr, task.scores.tolist())]
        return {"kind": "pairs", "pairs": len(task.first), "hash": hashed(parts)}
    if isinstance(task, Labelled):
        labels = [*map(str, task.labels.tolist()), "|", *map(str, task.right.tolist())]
        counts = {"fitted": len(task.fitted), "judged": len(task.texts)}
        return {"kind": "labels", **counts, "hash": hashed([*task.fitted, *task.texts, *labels])}
    parts = [*task.queries, "|", *task.documents, *map(str, task.right)]
    return {
        "kind": "retrieve",
        "queries": len(task.queries),
        "documents": len(task.documents),
        "hash": hashed(parts),
    }


def hashed(parts: Sequence[str]) -> str:
    """Sixteen hex digits of texts in their order."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(part.encode(errors="surrogatepass") + b"\0")
    return digest.hexdigest()
