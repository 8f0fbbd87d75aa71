"""Read rows of schema 1, which kept coordinates inside `model`, `revision`, `measure` and `note`.

Only this module parses such texts. What it finds goes into the typed columns of schema 2; the texts stay as
they are, except that the findings about a checkpoint, which were glued to the notes of its rows, are removed.
P-values were rounded to two digits in notes and keep that rounding.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from isoscope.results.row import COLUMNS

SCHEMA_1 = 1
COLUMNS_1 = {name: COLUMNS[name] for name in list(COLUMNS)[: list(COLUMNS).index("note") + 1]}
_VERDICTS = ("helped", "hurt", "no difference", "cannot matter", "undefined")
_CHANGE = ".change"
_MAIN = r"^(?:spearman|accuracy|accuracy_ridge|accuracy_unpenalised|reciprocal_rank|perplexity)\."
_BUDGET = "a budget of "
_SEED = r"^(?:entropy (?P<setting>[\d.]+), )?seed (?P<seed>\d+)$"
_ARM = (  # of a block under a bias; of LocAteR, by strength and target; of a width, by its number of heads
    r"^(?P<bias_arm>.+), bias (?P<bias>\S+)$"
    r"|^(?P<shape>.+): (?:none|(?P<about>λ \S+), τ (?P<target>\S+))$"
    r"|^width (?P<width>\d+), (?P<heads>heads \d+)$"
)
_JUMP = r"^(?P<tag>jump|turn|stray)_in_(?P<about>.+)$"
_REGIME = r"regime: (?P<tag>\w+)"
_REGIMES = r"regimes: (?P<tag>[^;]*)"
_P = r"(?:^|; |, |nominal )p = (?P<p>[\d.e+-]+)"


def upgraded(rows: pd.DataFrame, facts: Mapping[str, object]) -> pd.DataFrame:
    """Rows of schema 1 with the columns of schema 2; `facts` are those of their unit."""
    rows = rows.assign(note=_without_findings(rows["note"].fillna(""), facts))
    model, revision, measure, note = (
        rows[name].fillna("") for name in ("model", "revision", "measure", "note")
    )
    seeded, named = revision.str.extract(_SEED), model.str.extract(_ARM)
    arm = named["bias_arm"].fillna(named["shape"]).fillna(named["heads"])
    setting = named["bias"].fillna(named["target"]).fillna(named["width"])
    jumped = measure.str.extract(_JUMP)
    about = jumped["about"].fillna(named["about"])
    changed = measure.str.endswith(_CHANGE)
    verdict = note.map(lambda text: next((word for word in _VERDICTS if text.startswith(word)), "undefined"))
    regime = note.str.extract(_REGIME)["tag"].fillna(note.str.extract(_REGIMES)["tag"]).fillna("")
    regime = regime.mask(measure.str.contains(_MAIN), "main")
    rows = rows.assign(
        tag=jumped["tag"].fillna(regime).where(~changed, verdict),
        p=note.str.extract(_P)["p"],
        arm=arm.fillna(model.where(seeded["seed"].notna())).fillna(""),
        seed=seeded["seed"],
        setting=setting.fillna(seeded["setting"]),
        about=about.fillna("").where(~changed, measure.str.removesuffix(_CHANGE)),
    )
    numbers = {"p": "float64", "seed": "float64", "setting": "float64"}
    return rows.astype(numbers)[list(COLUMNS)].astype(COLUMNS)


def upgraded_facts(facts: dict[str, object]) -> dict[str, object]:
    """Facts of a unit of schema 1, with the note on the budget of a Monitor where schema 2 keeps it."""
    notes = facts.get("notes")
    told = [str(note) for note in notes] if isinstance(notes, list) else []
    return {**facts, "budget note": next((note for note in told if note.startswith(_BUDGET)), "")}


def _without_findings(notes: pd.Series, facts: Mapping[str, object]) -> pd.Series:
    """Notes without the findings at their end, the last one first."""
    findings = facts.get("findings")
    for finding in reversed(findings if isinstance(findings, list) else []):
        words = str(finding.get("words", "")) if isinstance(finding, Mapping) else ""
        glued = notes.str.endswith(words) if words else pd.Series(False, notes.index)
        notes = notes.where(~glued, notes.str.removesuffix(words).str.removesuffix("; "))
    return notes
