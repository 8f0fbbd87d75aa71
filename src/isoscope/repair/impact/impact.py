"""Does a repair matter? Scores of tasks before it and after it, with the geometry beside them.

A repair is fitted on texts that no task judges (overlap.py), every score has its paired interval and its
verdict (outcome.py), and where a map cannot matter to a reader that is tested on the map's own numbers
(maps.py). Rows name the repair in the column `model`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import IsoscopeError
from isoscope.repair.fit.kinds import KINDS, parse
from isoscope.repair.fit.sample import SHOWN
from isoscope.repair.fit.transforms import fit
from isoscope.repair.hubs import NEAREST
from isoscope.repair.impact.maps import cannot_matter, character
from isoscope.repair.impact.outcome import Array, Change, Outcome, changed
from isoscope.repair.impact.overlap import Split
from isoscope.repair.impact.scores import hub_outcomes
from isoscope.repair.impact.states import Encoded
from isoscope.repair.impact.tasks import some
from isoscope.repair.impact.words import CHANGE
from isoscope.repair.keep.repair import Repair
from isoscope.results.row import Row
from isoscope.run.observe.observe import describe
from isoscope.sites import Site

AS_IT_IS = "as it is"
REPAIRS = "centre;standardise;abtt;whiten;rogue;cluster-abtt"
"""The repairs that are judged where none are named."""
MOST = 4096  # judged texts of which geometry and hubs are read


@dataclass(frozen=True, eq=False)
class Judged:
    """Vectors under one repair (None: as they are): scores, what changed, and the geometry's rows."""

    label: str
    repair: Repair | None
    outcomes: Sequence[Outcome]
    changes: Sequence[Change]
    geometry: Sequence[Row]
    remarks: Sequence[str] = ()

    def rows(self, run: str, revision: str, site: Site, seed: int) -> list[Row]:
        """Geometry, scores with their intervals, changes with their verdicts."""
        at = (run, self.label, revision, None, site.kind, site.layer, None)
        found = [Row.at(*at, row.measure, row) for row in self.geometry]
        found += [Row.at(*at, each.measure, each.reading(seed)) for each in self.outcomes]
        changes = {each.measure: each.noted() for each in self.changes}
        return found + [Row.at(*at, name + CHANGE, by, about=name) for name, by in changes.items()]

    def notes(self) -> list[str]:
        """What was left out, and what the fit remarks."""
        lost = {
            f"{each.measure}: {each.left_out} {each.per} have a vector with NaN or Inf and are left out"
            for each in self.outcomes
            if each.left_out
        }
        told = list(self.repair.notes) if self.repair else []
        plain = int(bool(self.repair and self.repair.left_out))  # others begin with the name of their step
        named = self.label in {kind.name for kind in KINDS}
        mine = [text if named and at >= plain else f"{self.label}: {text}" for at, text in enumerate(told)]
        return [*sorted(lost), *mine, *self.remarks]


def refuse_too_many(recipes: Sequence[str], widths: Sequence[int]) -> None:
    """Say before anything runs that a repair asks for more dimensions than vectors have."""
    for recipe in recipes:
        for step in parse(recipe):
            asked = step.number(0, 1) if step.kind.name in ("whiten", "abtt", "rogue") else 1
            if asked > (width := min(widths)):
                raise IsoscopeError(f"'{step}' asks for more dimensions than the {width} that vectors have.")


def judge(
    split: Split, encoded: Encoded, site: Site, recipes: Sequence[str], *, seed: int = 0
) -> list[Judged]:
    """Fit every repair on `split.fitted` at a site, and judge all tasks before and after; say what failed."""
    fitted = encoded.at(site, split.fitted)
    sample = list({encoded.rows[text]: text for text in some(split.judged, MOST, seed)}.values())
    refuse_constant(fitted, f"{site}: the texts that repairs are fitted on")
    refuse_constant(encoded.at(site, sample), f"{site}: the texts that are judged")
    size = float(np.sqrt(np.nanmean((encoded.exact(site, sample) ** 2).sum(1))))
    found: list[Judged] = []
    refused: list[IsoscopeError] = []
    for recipe in ["", *recipes]:
        try:
            repair = fit(recipe, fitted, precise=True) if recipe else None
        except IsoscopeError as reason:
            refused.append(reason)
            found[0] = replace(found[0], remarks=[*found[0].remarks, f"{recipe} is left out: {reason}"])
            continue

        def look(texts: Sequence[str], repair: Repair | None = repair) -> Array:
            vectors = encoded.exact(site, texts)
            return vectors if repair is None else repair.apply(vectors)

        outcomes = [each for task in split.tasks for each in task.outcomes(look, seed)]
        cloud = look(sample)
        cloud = cloud[np.isfinite(cloud).all(1)]
        if len(cloud) > NEAREST:
            outcomes += hub_outcomes(cloud)
        geometry = describe(cloud, measures=SHOWN, seed=seed).rows()
        changes = []
        if repair is not None:
            kind = character(repair, size)
            for one, two in zip(found[0].outcomes, outcomes, strict=True):
                # where the reader became one that tells all apart, no map is without effect
                why = cannot_matter(kind, two.reader) if one.reader == two.reader else ""
                changes.append(changed(one, two, why, seed))
        found.append(Judged(recipe or AS_IT_IS, repair, outcomes, changes, geometry))
    if refused and len(found) == 1:
        raise refused[0]
    return found


def known(found: Sequence[Judged], split: Split, site: Site) -> dict[str, object]:
    """What a run keeps of a layer beside its rows."""
    repairs: dict[str, object] = {}
    for label, repair in ((each.label, each.repair) for each in found):
        if repair is not None:
            kind = {"affine": repair.is_affine, "invertible": repair.is_invertible}
            repairs[label] = {"fitted": repair.name, "vectors": repair.n, **kind}
    notes = [f"{site}: {note}" for each in found for note in each.notes()]
    return {
        "repairs": repairs, "order": [each.label for each in found],
        "measures": [each.measure for each in found[0].outcomes],
        "notes": list(dict.fromkeys([*split.notes, *notes]))
    }  # fmt: skip


def refuse_constant(vectors: Tensor, what: str) -> None:
    """Say that all vectors [n, d] that are finite are the same."""
    finite = vectors[vectors.isfinite().all(1)].double()
    if len(finite) < 2:
        raise IsoscopeError(f"{what} give {len(finite)} vectors without NaN or Inf; at least 2 are needed.")
    apart = (finite - finite[0]).abs().max()
    if float(apart) <= torch.finfo(torch.float32).eps * float(finite[0].abs().max()):
        raise IsoscopeError(f"{what} all have the same vector; choose other layers or another --pool.")
