"""Tasks by their texts: which are judged, which a reader is fitted on, and the scores that vectors get.

`look` gives the vectors [n, d] of texts, as they are or repaired; a task asks for those it needs. Which one
in five of a file's labelled texts is judged is decided by a hash of the text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.repair.impact.files import read_labelled, read_pairs, read_sought
from isoscope.repair.impact.outcome import MAIN, Array, Outcome
from isoscope.repair.impact.probe import READERS, probe, refuse_one_class
from isoscope.repair.impact.scores import refuse_constant_scores, retrieval, similarity

FIFTH = 5
_STANDING = ("spearman", "accuracy", "accuracy_ridge", "accuracy_unpenalised", "reciprocal_rank")
Look = Callable[[Sequence[str]], Array]


@dataclass(frozen=True, eq=False)
class Pairs:
    """How well cosines rank pairs of texts [n] by their scores [n]."""

    name: str
    first: Sequence[str]
    second: Sequence[str]
    scores: Array
    fitted: Sequence[str] = ()
    named = ("spearman", "pearson")

    @property
    def judged(self) -> list[str]:
        """The texts that are judged, each once."""
        return list(dict.fromkeys([*self.first, *self.second]))

    def digest(self) -> dict[str, object]:
        """What fixes it: its kind, how many units, and a hash of all it holds."""
        parts = [*self.first, *self.second, *map(repr, self.scores.tolist())]
        return {"kind": "pairs", "pairs": len(self.first), "hash": hashed(parts)}

    def outcomes(self, look: Look, seed: int) -> list[Outcome]:
        """Spearman and Pearson."""
        return _named(similarity(look(self.first), look(self.second), self.scores), self.name)


@dataclass(frozen=True, eq=False)
class Labelled:
    """How well a linear reader, fitted on some texts, tells the classes of others."""

    name: str
    fitted: Sequence[str]
    labels: Array
    judged: Sequence[str]
    right: Array
    readers: tuple[str, ...] = READERS[:1]

    @property
    def named(self) -> tuple[str, ...]:
        """The scores by the readers that were asked for, whatever becomes of their search."""
        return tuple("accuracy" if each == READERS[0] else f"accuracy_{each}" for each in self.readers)

    def digest(self) -> dict[str, object]:
        """What fixes it: its kind, how many units, and a hash of all it holds."""
        labels = [*map(str, self.labels.tolist()), "|", *map(str, self.right.tolist())]
        counts = {"fitted": len(self.fitted), "judged": len(self.judged)}
        return {"kind": "labels", **counts, "hash": hashed([*self.fitted, *self.judged, *labels])}

    def outcomes(self, look: Look, seed: int) -> list[Outcome]:
        """Accuracy of each reader."""
        given = (look(self.fitted), self.labels, look(self.judged), self.right)
        readers = zip(self.readers, self.named, strict=True)
        found = [replace(probe(*given, reader=each, seed=seed), measure=name) for each, name in readers]
        return _named(found, self.name)

    def without(self, texts: set[str]) -> Labelled:
        """The same without these texts to be fitted on."""
        kept = [place for place, text in enumerate(self.fitted) if text not in texts]
        return replace(self, fitted=[self.fitted[place] for place in kept], labels=self.labels[kept])


@dataclass(frozen=True, eq=False)
class Sought:
    """How near queries are to the documents that answer them, among all documents."""

    name: str
    queries: Sequence[str]
    documents: Sequence[str]
    right: Sequence[Sequence[int]]
    fitted: Sequence[str] = ()
    named = ("recall_1", "recall_10", "reciprocal_rank")

    @property
    def judged(self) -> list[str]:
        """The texts that are judged, each once."""
        return list(dict.fromkeys([*self.queries, *self.documents]))

    def digest(self) -> dict[str, object]:
        """What fixes it: its kind, how many units, and a hash of all it holds."""
        counts = {"queries": len(self.queries), "documents": len(self.documents)}
        parts = [*self.queries, "|", *self.documents, *map(str, self.right)]
        return {"kind": "retrieve", **counts, "hash": hashed(parts)}

    def outcomes(self, look: Look, seed: int) -> list[Outcome]:
        """Recall and mean reciprocal rank."""
        return _named(retrieval(look(self.queries), look(self.documents), self.right), self.name)


Task = Pairs | Labelled | Sought


def _named(outcomes: Iterable[Outcome], task: str) -> list[Outcome]:
    """Scores named after their task; some stand for it."""
    return [
        replace(each, measure=f"{each.measure}.{task}", tag=MAIN if each.measure in _STANDING else "")
        for each in outcomes
    ]


def hashed(parts: Sequence[str]) -> str:
    """Sixteen hex digits of texts in their order."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(part.encode(errors="surrogatepass") + b"\0")
    return digest.hexdigest()


def pairs(address: str, limit: int | None = None, seed: int = 0) -> Pairs:
    """The task of a file of pairs; of more than `limit`, those with the smallest hashes."""
    first, second, scores = read_pairs(address)
    kept = _some([f"{a}\t{b}" for a, b in zip(first, second, strict=True)], limit, seed)
    refuse_constant_scores(scores[kept])
    return Pairs(_name(address), [first[i] for i in kept], [second[i] for i in kept], scores[kept])


def labelled(
    address: str, limit: int | None = None, seed: int = 0, readers: Sequence[str] = READERS[:1]
) -> Labelled:
    """The task of labelled texts: one file, of which a fifth is judged, or ``FITTED,JUDGED``."""
    for reader in readers:
        if reader not in READERS:
            raise unknown_name("reader", reader, READERS)
    parts = [address] if Path(address).exists() else [part.strip() for part in address.split(",")]
    if len(parts) > 2:
        raise IsoscopeError(
            f"--labels takes one file, or two: to be fitted on, to be judged on; got '{address}'."
        )
    read = [read_labelled(part) for part in parts]
    if len(read) == 1:
        names, texts = read[0]
        mine = np.array([own_hash(text, 0) % FIFTH == 0 for text in texts], dtype=bool)
        cut = [np.flatnonzero(~mine).tolist(), np.flatnonzero(mine).tolist()]
        read = [([names[i] for i in part], [texts[i] for i in part]) for part in cut]
    sampled = [(names, texts, _some(texts, limit, seed)) for names, texts in read]
    chosen = [([names[i] for i in kept], [texts[i] for i in kept]) for names, texts, kept in sampled]
    known = sorted({name for names, _ in chosen for name in names})
    labels, right = (np.array([known.index(name) for name in names], dtype=np.int64) for names, _ in chosen)
    refuse_one_class(labels, right)
    return Labelled(_name(parts[0]), chosen[0][1], labels, chosen[1][1], right, tuple(readers))


def sought(address: str, limit: int | None = None, seed: int = 0) -> Sought:
    """The task of queries and documents; all documents of the file are searched."""
    queries, documents = read_sought(address)
    place = {document: i for i, document in enumerate(dict.fromkeys(documents))}
    right: dict[str, list[int]] = {}
    for query, document in zip(queries, documents, strict=True):
        if place[document] not in right.setdefault(query, []):
            right[query].append(place[document])
    asked = list(right)
    kept = [asked[i] for i in _some(asked, limit, seed)]
    return Sought(_name(address), kept, list(place), [right[query] for query in kept])


def own_hash(text: str, seed: int) -> int:
    """A number of 64 bits from the text and a seed."""
    body = text.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(body, digest_size=8, salt=seed.to_bytes(8, "big")).digest())


def _some(texts: Sequence[str], limit: int | None, seed: int) -> list[int]:
    """The places of at most `limit` texts, those with the smallest hashes, in the order of the file."""
    if limit is None or len(texts) <= limit:
        return list(range(len(texts)))
    return sorted(sorted(range(len(texts)), key=lambda i: own_hash(texts[i], seed))[:limit])


def some(texts: Sequence[str], limit: int | None, seed: int) -> list[str]:
    """At most `limit` of these texts, chosen by their hashes."""
    return [texts[i] for i in _some(texts, limit, seed)]


def _name(address: str) -> str:
    """What a file is called in the name of a measure: its stem."""
    return Path(address).name.split(".")[0] or "task"
