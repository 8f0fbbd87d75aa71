"""A paper: its claims, and what of it is not there. Claim by claim it becomes a run folder.

The same command makes what is missing, and again what failed; trainings and public models that were finished
are not made twice. A claim that ends in an exception is a row with the reason, undecided.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.lab.block.parts import EXPLANATIONS as OF_SCORES
from isoscope.measures.on_data import EXPLANATIONS as ON_DATA
from isoscope.measures.table import MEASURES
from isoscope.papers.claims import WORDS, Claim, Found, Verdict, failed, measured
from isoscope.papers.workshop import Workshop
from isoscope.results.row import COLUMNS
from isoscope.results.run import Run
from isoscope.results.store import RunFolder
from isoscope.results.trajectory import FAILED
from isoscope.run.monitor.own import explained
from isoscope.run.provenance import new_run
from isoscope.show.charts import Chart

KIND = "reproduce"
EXPLANATIONS = {**ON_DATA, **OF_SCORES, **explained({"loss": 0.0})}
"""What a page tells of numbers of claims that no measure of `MEASURES` has."""


@dataclass(frozen=True)
class Paper:
    """A paper: its name here, title, citation and claims; `absent` are experiments left out, and why."""

    name: str
    title: str
    citation: str
    claims: tuple[Claim, ...]
    absent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, and the rows and points that this is read from."""

    claim: Claim
    verdict: Verdict
    rows: pd.DataFrame
    points: pd.DataFrame

    def charts(self) -> list[Chart]:
        """What the claim wants drawn; nothing where there are no rows but of what failed."""
        return list(self.claim.draw(self.rows, self.points)) if len(measured(self.rows)) else []


def run_of(paper: Paper, workshop: Workshop) -> Run:
    """What is asked of every claim alike, sizes included; where models are kept and the device are not."""
    question: dict[str, object] = {
        "paper": paper.name, "scale": workshop.scale.name, "seeds": workshop.seeds, **workshop.scale.sizes,
        **{kind: workshop.address(kind) for kind in ("text", "images", "sound")}
    }  # fmt: skip
    run = new_run(KIND, paper.title, question, MEASURES)
    return replace(run, measures={**run.measures, **EXPLANATIONS})


def chosen(paper: Paper, names: Sequence[str] | None) -> list[Claim]:
    """The claims of these names, or all."""
    known = {claim.name: claim for claim in paper.claims}
    if names is not None and not names:
        raise IsoscopeError(f"--claims names none; leave it out for all, or take of: {', '.join(known)}.")
    for name in names or []:
        if name not in known:
            raise unknown_name(f"claim of {paper.name}", name, known)
    return [claim for claim in paper.claims if names is None or claim.name in names]


def left(paper: Paper, folder: RunFolder) -> list[Claim]:
    """The claims that the folder has not, or not whole."""
    there = {claim.name: folder.frame(claim.name) for claim in paper.claims if folder.has(claim.name)}
    whole = {name for name, rows in there.items() if not (rows["measure"] == FAILED).any()}
    return [claim for claim in paper.claims if claim.name not in whole]


def make(claims: Iterable[Claim], workshop: Workshop, folder: RunFolder) -> None:
    """Try claims one after the other and keep what is found."""
    for claim in claims:
        started = time.perf_counter()
        try:
            found = claim.experiment(workshop)
        except Exception as reason:  # noqa: BLE001  a defect of one claim must not cost the others
            kind = "" if isinstance(reason, IsoscopeError) else f"{type(reason).__name__}: "
            found = Found(failed(claim.name, f"{kind}{reason}"))
        rows = found.rows[list(COLUMNS)].astype(COLUMNS).assign(run=folder.run.id)
        verdict = _judge(claim, rows)
        facts: dict[str, object] = {"title": claim.title, "expected": claim.expected}
        facts |= {"verdict": verdict.word, "said": verdict.said, "notes": list(found.notes)}
        facts |= {"device": workshop.device, "seconds": round(time.perf_counter() - started, 1)}
        folder.write(claim.name, rows, facts, found.points)


def judged(paper: Paper, folder: RunFolder) -> list[Judged]:
    """Every claim of the paper that the folder has, judged from its rows."""
    there = {claim: folder.frame(claim.name) for claim in paper.claims if folder.has(claim.name)}
    return [Judged(one, _judge(one, rows), rows, folder.points(one.name)) for one, rows in there.items()]


def headline(found: Iterable[Judged]) -> str:
    """How many claims held, did not, and are undecided."""
    held = [each.verdict.held for each in found]
    if not held:
        return "No claim has been tried yet."
    parts = [f"{held.count(True)} of {len(held)} claims as expected"]
    words = {False: "not", None: WORDS[None]}
    parts += [f"{held.count(each)} {word}" for each, word in words.items() if each in held]
    return f"{', '.join(parts)}."


def _judge(claim: Claim, rows: pd.DataFrame) -> Verdict:
    """The claim's verdict; rows that its judge cannot read leave it undecided."""
    try:
        return claim.verdict(rows)
    except (LookupError, ValueError, TypeError) as reason:
        return Verdict(None, f"The rows could not be judged ({type(reason).__name__}: {reason}).")
