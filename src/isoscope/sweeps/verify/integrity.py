"""Whether checkpoints are what their names say: twins, wrong order, changed config, damage.

All from fingerprints, before anything is measured. Which of two twins has the wrong name nobody can tell, so
that both are named. Decided here: weights under step 0 and step 1 may be the same, as a warm-up that begins
at a rate of 0 leaves them; one without a step (main, best, final) may equal one that has a step, except that
main is to be the last. Weights that are not finite are no twins. A part (a layer, a shard) is a twin where
the two share it and one between them has another: what is frozen is the same everywhere.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np

from isoscope.sweeps.find.checkpoints import Checkpoint
from isoscope.sweeps.verify.fingerprint import NOT_FINITE, Fingerprint
from isoscope.sweeps.verify.order import strays

TWIN, OUT_OF_ORDER, CONFIG = "twin", "out of order", "config"
_SHOWN = 3  # names, or settings, that a sentence tells


@dataclass(frozen=True)
class Finding:
    """What is wrong with one checkpoint: twin, out of order, config, broken or not finite; and in words."""

    checkpoint: str
    step: int | None
    kind: str
    words: str


def examine(checkpoints: Sequence[Checkpoint], prints: Mapping[str, Fingerprint]) -> list[Finding]:
    """All that fingerprints, by the checkpoints' names, tell of checkpoints in the order of their steps."""
    known = [each for each in checkpoints if each.name in prints]
    found = [(each, prints[each.name].kind, prints[each.name].fault) for each in known]
    told = [one for one in found if prints[one[0].name].fault]
    for seek in (_twins, _shared_parts, _out_of_order, _configs):
        told += seek(known, prints)
    place = {each.name: number for number, each in enumerate(known)}
    told.sort(key=lambda one: place[one[0].name])
    return [Finding(each.name, each.step, kind, words) for each, kind, words in told]


_Told = Iterator[tuple[Checkpoint, str, str]]


def _twins(known: Sequence[Checkpoint], prints: Mapping[str, Fingerprint]) -> _Told:
    by_digest: defaultdict[str, list[Checkpoint]] = defaultdict(list)
    for each in known:
        if prints[each.name].kind != NOT_FINITE and (digest := prints[each.name].digest):
            by_digest[digest].append(each)
    for alike in by_digest.values():
        for each in alike if len(alike) > 1 and not _may_be_alike(alike, known) else ():
            others = [other.name for other in alike if other is not each]
            yield each, TWIN, f"its weights are the same, bit for bit, as those of {_list(others)}."


def _may_be_alike(alike: Sequence[Checkpoint], known: Sequence[Checkpoint]) -> bool:
    """Whether it is no wonder that these have the same weights."""
    steps = sorted({each.step for each in alike if each.step is not None})
    if len(steps) == 0:
        return False
    last = max(each.step for each in known if each.step is not None)
    if len(steps) == 1:
        return all(each.revision != "main" or steps == [last] for each in alike)
    return steps == [0, 1] and all(each.step is not None for each in alike)


def _shared_parts(known: Sequence[Checkpoint], prints: Mapping[str, Fingerprint]) -> _Told:
    """Checkpoints that are no twins and share a part, which one between them has otherwise."""
    by_part: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)  # digest and name
    for each in known:
        if prints[each.name].kind == NOT_FINITE:
            continue
        for part, digest in prints[each.name].parts:
            by_part[part].append((digest, each.name))
    in_common: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for part, pairs in sorted(by_part.items()):
        stretches: defaultdict[str, list[list[str]]] = defaultdict(list)  # names in a row, by their digest
        for digest, alike in groupby(pairs, itemgetter(0)):
            stretches[digest].append([name for _, name in alike])
        for apart in stretches.values():
            for number, stretch in enumerate(apart):
                others = [name for k, other in enumerate(apart) if k != number for name in other]
                for name in stretch:
                    other = next((o for o in others if prints[o].digest != prints[name].digest), None)
                    if other is not None:
                        in_common[name][other].append(part)
    for each in known:
        if shared := in_common.get(each.name):
            other, parts = max(shared.items(), key=lambda item: len(item[1]))
            words = f"in part ({_list(parts)}) its weights are the same, bit for bit, as those of {other}"
            yield each, TWIN, f"{words}, and not as those between."


def _out_of_order(known: Sequence[Checkpoint], prints: Mapping[str, Fingerprint]) -> _Told:
    """Of those with a step, a sketch and the same tensors: which lie elsewhere than their names say."""
    layouts = Counter(prints[each.name].layout for each in known if prints[each.name].sketch)
    if not layouts:
        return
    usual = layouts.most_common(1)[0][0]
    alike = (each for each in known if each.step is not None and prints[each.name].layout == usual)
    walk = [each for each in alike if np.isfinite(prints[each.name].sketch).all()]
    for stray in strays(np.array([prints[each.name].sketch for each in walk])):
        block = walk[stray.first : stray.last + 1]
        around = " and ".join(walk[k].name for k in (stray.first - 1, stray.last + 1) if 0 <= k < len(walk))
        whose = "its weights" if len(block) == 1 else f"the weights of {block[0].name} to {block[-1].name}"
        where = (
            "which are near each other: another training's, or disturbed"
            if stray.near is None
            else f"beside which the name puts them, and nearest to those of {walk[stray.near].name}"
        )
        for each in block:
            yield each, OUT_OF_ORDER, f"{whose} are far from those of {around}, {where}."


def _configs(known: Sequence[Checkpoint], prints: Mapping[str, Fingerprint]) -> _Told:
    """Those whose config, or whose tensors, are not those of most; the earlier where both are as many."""
    sound = [each for each in known if prints[each.name].kind != "broken"]
    usual = _most(prints[each.name].config for each in sound)
    for each in sound:
        own = prints[each.name]
        if own.config == usual:
            continue
        like = next(prints[other.name] for other in sound if prints[other.name].config == usual)
        if not own.config:
            yield each, CONFIG, "it has no config.json, and the others have."
        elif usual:
            yield each, CONFIG, f"its config is another than most have: {_changes(like, own)}."
    layouts = [each for each in sound if prints[each.name].layout and prints[each.name].config == usual]
    frequent = _most(prints[each.name].layout for each in layouts)
    other = "its tensors have other names or shapes than those of most, by the same config."
    yield from ((each, CONFIG, other) for each in layouts if prints[each.name].layout != frequent)


def _most(values: Iterable[str]) -> str:
    counted = Counter(values).most_common(1)
    return counted[0][0] if counted else ""


def _changes(before: Fingerprint, after: Fingerprint) -> str:
    old, new = dict(before.settings), dict(after.settings)
    names = [name for name in sorted(old | new) if old.get(name) != new.get(name)]
    told = [f"{name} {new.get(name, 'left out')} instead of {old.get(name, 'none')}" for name in names]
    more = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
    return ", ".join(told[:_SHOWN]) + more


def _list(names: Sequence[str]) -> str:
    """Names as a sentence has them.

    >>> _list(["a"]), _list(["a", "b", "c", "d", "e"])
    ('a', 'a, b, c and 2 more')
    """
    if len(names) > _SHOWN:
        return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
