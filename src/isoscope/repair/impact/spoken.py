"""Perplexity as a task: text to be judged on, other text to fit on, and the verdict on each repair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from isoscope.data.documents import documents
from isoscope.data.source import Data
from isoscope.errors import IsoscopeError
from isoscope.models.inputs import open_data
from isoscope.models.source import Model
from isoscope.repair.before_after import SHOWN
from isoscope.repair.fit.sample import Sample
from isoscope.repair.fit.transforms import fit
from isoscope.repair.impact.impact import AS_IT_IS, Judged
from isoscope.repair.impact.maps import cannot_matter_to_head
from isoscope.repair.impact.perplexity import HeadStates, Speaker, in_place, open_speaker, perplexity
from isoscope.repair.impact.verdict import changed
from isoscope.run.observe.observe import describe

LONG = 40  # letters: shorter lines, as headings are, may be in both texts


@dataclass(frozen=True, eq=False)
class Spoken:
    """A language model, the text it is judged on, and the text that repairs are fitted on."""

    name: str
    speaker: Speaker
    judged: Data
    fitted: Data


def open_spoken(
    model: Model,
    text: str,
    fitted: str | None,
    sequences: int = 64,
    max_length: int | None = None,
    batch_size: int = 8,
) -> Spoken:
    """Read both texts, packed into full sequences, and refuse those that share a line."""
    if fitted is None:
        raise IsoscopeError("perplexity takes repairs fitted on other text than --text; give --fit.")
    refuse_shared_lines(text, fitted)
    speaker = open_speaker(model)
    data = [
        open_data(
            address, speaker.model, limit=sequences, max_length=max_length, batch_size=min(batch_size, 8)
        )
        for address in (text, fitted)
    ]
    return Spoken(Path(text).name.split(".")[0] or "text", speaker, *data)


def refuse_shared_lines(text: str, fitted: str) -> None:
    """Say that a line of some length is in both texts, or every line of what is judged."""
    mine, others = ({line.strip() for line in documents(each, whole=False)} for each in (text, fitted))
    both = {line for line in mine & others if len(line) >= LONG}
    if mine <= others:
        both = mine
    if both:
        raise IsoscopeError(
            f"{len(both)} lines of {text}, which is judged, are in {fitted} as well, which repairs are "
            "fitted on; give another --fit."
        )


def judge_spoken(spoken: Spoken, recipes: Sequence[str], seed: int = 0) -> list[Judged]:
    """Fit every repair on what enters the head, and judge the perplexity before and after."""
    states = torch.cat(list(HeadStates(spoken.speaker, spoken.fitted)))
    sample = Sample.of(torch.cat([part for part in HeadStates(spoken.speaker, spoken.judged)])).points
    found: list[Judged] = []
    for recipe in ["", *recipes]:
        repair = in_place(fit(recipe, states, precise=True)) if recipe else None
        outcome = perplexity(spoken.speaker, spoken.judged, repair, spoken.name)
        points = sample.double()[:4096]
        cloud = points if repair is None else repair.apply(points)
        geometry = describe(cloud, measures=SHOWN, seed=seed).rows()
        changes = []
        if repair is not None:
            reason = cannot_matter_to_head(repair, spoken.speaker.weight)
            changes = [changed(found[0].outcomes[0], outcome, reason, seed)]
        found.append(Judged(recipe or AS_IT_IS, repair, [outcome], changes, geometry))
    return found
