"""What claims read of the heads of a model: a training of the lab at chosen steps, or a public model.

Two numbers of all heads together are rows as well: `localised_share` (and `localised_share_on_data`), of the
heads whose regime names a stretch; and `lean`, the mean of |θ|/2σ with θ = tr W and σ² = ‖W‖_F²/3 + tr W²/4:
above 1 a head with tr W ≫ 1/T is localised, and a random W has about .69/√d.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from isoscope.errors import IsoscopeError
from isoscope.lab.contrast.trial import rows_of_heads, weigh_trial
from isoscope.lab.train.experiment import lesson_of
from isoscope.models.source import Model, load
from isoscope.models.weights import open_weights
from isoscope.papers.claims import Verdict, all_of, failed, lacking, measured
from isoscope.papers.workshop import Trained, Workshop, digest_of, is_kept
from isoscope.results.points import points_frame
from isoscope.results.reading import Reading
from isoscope.results.row import Row, frame
from isoscope.results.store import open_run, read_run
from isoscope.results.trajectory import FAILED
from isoscope.run.provenance import new_run
from isoscope.run.weigh.heads import weigh_heads
from isoscope.run.weigh.weigh import weigh
from isoscope.run.weigh.weighed import weight_measures
from isoscope.show.regimes import LOCALISED

KIND = "query_key"
PUBLIC = ("bert", "gpt2", "pythia-160m")  # public models whose heads are read, by name in the zoo
PUBLIC_LENGTH = 512  # T that regimes of public models are told for
SHARES = {"trace": "localised_share", "trace_on_data": "localised_share_on_data"}
_MOMENTS = ("trace", "trace_square", "frobenius")


@dataclass(frozen=True)
class Look:
    """A training that is read at some steps; at those of `on_data`, on what it held out as well."""

    training: Trained
    steps: tuple[int, ...]
    on_data: tuple[int, ...]
    device: str

    @property
    def question(self) -> dict[str, object]:
        """What fixes its rows."""
        steps = {"steps": list(self.steps), "on_data": list(self.on_data)}
        return {"training": self.training.folder.name, **steps}


def at_end(training: Trained, device: str) -> Look:
    """A training that is read at its last step, with its data."""
    last = (training.experiment.recipe.steps,)
    return Look(training, last, last, device)


def looked(workshop: Workshop, asked: Sequence[Look]) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    """Rows and points of each, read once for all claims and kept among the workshop's models."""
    folders = [workshop.models / f"heads-{digest_of(each.question)}" for each in asked]
    left = [(each, folder) for each, folder in zip(asked, folders, strict=True) if not is_kept(folder)]
    answers = workshop.side_by_side(look, [each for each, _ in left])
    for (each, folder), answer in zip(left, answers, strict=True):
        _keep(folder, each.training.folder.name, each.question, *answer)
    found = zip(asked, map(read_run, folders), strict=True)
    return [(each.training.named(one.frame()), one.points(one.units()[0])) for each, one in found]


def look(asked: Look) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of all heads at these steps, and points of the pictures of the last that was read on data."""
    lesson = lesson_of(asked.training.experiment)
    rows: list[Row] = []
    points = points_frame([])
    for step in asked.steps:
        source = asked.training.at(step, asked.device)
        if step in asked.on_data:
            found, points, _ = weigh_trial(source, lesson)
            rows += found
        else:
            rows += head_rows(source, lesson.length)
    each = frame(rows)
    return pd.concat([each, together(each)], ignore_index=True), points


def head_rows(source: Model, length: int) -> Iterator[Row]:
    """What the weights of queries and keys say alone, of every layer and head."""
    return rows_of_heads(source, weigh_heads(open_weights(source), length, 0, lambda site, why: None))


def together(rows: pd.DataFrame) -> pd.DataFrame:
    """The numbers of all heads together, at every step of every model."""
    heads = rows[rows["head"].notna() & rows["value"].notna() & (rows["kind"] == KIND)]
    found: list[Row] = []
    for (model, revision, _), own in heads.groupby(["model", "revision", "step"], dropna=False):
        steps = own["step"].dropna()
        at = (str(model), str(revision), int(steps.iloc[0]) if len(steps) else None, KIND, None, None)
        for name, share in SHARES.items():
            part = own[own["measure"] == name]
            if len(part):
                found.append(Row.at("", *at, share, Reading(float(is_localised(part).mean()), len(part))))
        lean = leans(own)
        if len(lean):
            found.append(Row.at("", *at, "lean", Reading(float(lean.mean()), len(lean))))
    return frame(found)


def is_localised(traces: pd.DataFrame) -> pd.Series:
    """Whether the regime that a trace is tagged with names a stretch."""
    return traces["tag"].isin(LOCALISED)


def leans(rows: pd.DataFrame) -> pd.Series:
    """|θ|/2σ of every head of one model at one step."""
    moments = rows[rows["measure"].isin(_MOMENTS)]
    wide = moments.pivot_table(index=["layer", "head"], columns="measure", values="value")
    if set(_MOMENTS) - set(wide.columns):
        return pd.Series(dtype=float)
    square = wide["frobenius"] ** 2 / 3 + wide["trace_square"] / 4
    return wide["trace"].abs() / 2 / square[square > 0] ** 0.5


def public(workshop: Workshop, names: Iterable[str] = PUBLIC) -> pd.DataFrame:
    """Rows of the heads of public models on text, read once; one that cannot be had is a row `failed`."""
    parts = [frame([])]
    for name in names if workshop.scale.public else ():
        text = workshop.address("text")
        question: dict[str, object] = {"public": name, "weights": PUBLIC_LENGTH, "data": text}
        folder = workshop.models / f"public-{digest_of(question)}"
        if not is_kept(folder):
            try:
                source = load(name, device=workshop.device)
                weighed = weigh(source, length=PUBLIC_LENGTH, data=text)
            except IsoscopeError as reason:
                parts.append(failed(name, str(reason)))
                continue
            _keep(folder, name, question, weighed.frame(), weighed.points())
        rows = read_run(folder).frame()
        own = rows[rows["kind"] == KIND].assign(model=name, revision="")
        parts += [own, together(own)]
    return pd.concat(parts, ignore_index=True)


def beside(rows: pd.DataFrame, first: str, second: str, place: list[str]) -> pd.DataFrame:
    """Rows of a measure, each with another's value at the same place as `value_other`."""
    other = rows.loc[rows["measure"] == second, [*place, "value"]]
    return rows[rows["measure"] == first].merge(other, on=place, suffixes=("", "_other"))


def with_public(
    rows: pd.DataFrame, found: Sequence[Verdict], said: str, details: str,
    judge: Callable[[pd.DataFrame, str], Verdict]
) -> Verdict:  # fmt: skip
    """The verdict on models of the lab and on each public model, open where one is lost."""
    there = measured(rows)
    lost = set(rows.loc[rows["measure"] == FAILED, "model"]) & set(PUBLIC)
    read = [judge(there[there["model"] == name], name) for name in PUBLIC if (there["model"] == name).any()]
    words = " ".join([said, *(each.said for each in read)]).strip()
    return all_of([*found, *read, *([Verdict(None, "")] if lost else [])], words + lacking(rows), details)


def _keep(
    folder: Path, name: str, question: dict[str, object], rows: pd.DataFrame, points: pd.DataFrame
) -> None:
    kept = open_run(folder, new_run("weights", name, question, weight_measures()))
    kept.write(name, rows.assign(run=kept.run.id), {}, points)
