"""Arms against each other: attention × norm × penalty, from several seeds.

Every arm is trained towards several entropies of its attention, by a penalty; or, where none is asked for,
once a seed as it comes. A trial is a unit of a run folder, which grows by more arms and seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import torch

from isoscope.errors import IsoscopeError
from isoscope.lab.contrast.trial import MEASURES, Trial, questions_of, told_besides, try_
from isoscope.lab.processes import in_processes
from isoscope.lab.train.experiment import Experiment, lesson_of
from isoscope.lab.variants.table import WITHOUT_ATTENTION
from isoscope.measures.table import choose
from isoscope.results.run import Run
from isoscope.results.store import RunFolder, open_run
from isoscope.run.monitor.own import explained
from isoscope.run.provenance import new_run

ENTROPIES = (0.35, 0.75)  # where the least and the largest target is, unless they are listed
STRENGTH = 10.0
NO_PENALTY = "none"
AS_THEY_COME = "none"
_APART = ("attention", "norm", "penalty", "checkpoints", "seed")  # knobs of an arm, or of no trial


@dataclass(frozen=True)
class Contrast:
    """What is compared: arms by name (the first is the reference), at these entropies, from these seeds.

    Without entropies arms are compared as they come, weights and all; `probe` is what their states are asked.
    """

    arms: dict[str, Experiment]
    entropies: tuple[float, ...]
    seeds: int
    strength: float = STRENGTH
    probe: str = ""

    @property
    def reference(self) -> str:
        """The arm that the others are held against."""
        return next(iter(self.arms))

    @property
    def driven(self) -> bool:
        """Whether arms are driven to entropies."""
        return bool(self.entropies)

    def trials(self) -> list[Trial]:
        """All trials: seed by seed, so that what is done first can be compared first."""
        found = []
        for seed, (place, (name, arm)) in product(range(self.seeds), enumerate(self.arms.items())):
            own = replace(arm, recipe=replace(arm.recipe, seed=seed))
            for aim in (None,) if arm.attention in WITHOUT_ATTENTION else self.entropies or (None,):
                drive = [] if aim is None else [f"entropy={self.strength:g},target={aim:g}"]
                driven = replace(own, penalty="+".join(filter(None, [arm.penalty, *drive])))
                found.append(Trial(name, driven, aim, place, not self.driven, self.probe))
        return found


def contrast(
    base: Experiment, attention: Sequence[str], norm: Sequence[str], penalty: Sequence[str],
    entropies: Sequence[float], seeds: int, strength: float = STRENGTH, probe: str = ""
) -> Contrast:  # fmt: skip
    """Every attention with every norm and every penalty ("none" is without), otherwise like `base`."""
    arms = {}
    for one, two, three in product(attention, norm, penalty):
        none = three in ("", NO_PENALTY)
        words = [one, two if len(norm) > 1 or two != "pre" else "", "" if none else three]
        if not entropies:
            lists = ((attention, one), (norm, two), (penalty, three or NO_PENALTY))
            words = [word for several, word in lists if len(several) > 1]
        arm = replace(base, attention=one, norm=two, penalty="" if none else three)
        arms[", ".join(filter(None, words))] = arm
    if len(arms) < 2:
        raise IsoscopeError("a contrast has two arms or more; name them as in --attention softmax,qk-norm.")
    if len(set(entropies)) == 1 and set(attention) - set(WITHOUT_ATTENTION):
        raise IsoscopeError("a line needs two entropies or more; write --entropies 3, or a list as .4,.6.")
    return Contrast(arms, tuple(sorted(set(entropies))), seeds, strength, probe)


def parse_entropies(written: str) -> tuple[float, ...]:
    """A number of targets, spread evenly, or a list of them; "none" for arms as they come.

    >>> parse_entropies("3"), parse_entropies(".4,.6"), parse_entropies("none")
    ((0.35, 0.55, 0.75), (0.4, 0.6), ())
    """
    if written.strip() == AS_THEY_COME:
        return ()
    words = [word.strip() for word in written.split(",") if word.strip()]
    if len(words) == 1 and words[0].isdecimal() and int(words[0]) > 1:
        (low, high), count = ENTROPIES, int(words[0])
        return tuple(round(low + (high - low) * i / (count - 1), 4) for i in range(count))
    try:
        found = tuple(map(float, words))
    except ValueError:
        found = ()
    if len(found) < 2 or not all(0 < each < 1 for each in found):
        raise IsoscopeError(
            "--entropies is how many, 2 or more, or a list of normalised entropies between 0 and 1 such as "
            f".4,.6, or '{AS_THEY_COME}'; got '{written}'."
        )
    return found


def open_contrast(asked: Contrast, out: Path) -> RunFolder:
    """Its run folder. What fixes a trial must be the same there; arms, entropies and seeds may be others."""
    return open_run(out, run_of(asked))


def run_of(asked: Contrast) -> Run:
    """What is asked of every trial alike."""
    base = asked.arms[asked.reference]
    arms = asked.arms.values()  # names of arms do not tell what all arms have alike
    alike = [name for name in ("attention", "norm") if len({getattr(arm, name) for arm in arms}) == 1]
    apart = [name for name in _APART if asked.driven or name not in alike]
    fixed = {name: value for name, value in base.fixed().items() if name not in apart}
    question = {**fixed, **lesson_of(base).facts}
    question |= {"reference": asked.reference, "measured": list(MEASURES)}
    question |= {"strength": asked.strength} if asked.driven else {"driven": False}
    if asked.probe:
        question |= questions_of(asked.probe, base).facts
    title = f"arms {'of attention ' if asked.driven else ''}on {base.task}"
    run = new_run("contrast", title, question, choose(MEASURES))
    loss = {**explained({"loss": 0.0})["loss"], "says": "The loss on what is held out, after the last step."}
    besides = told_besides() if asked.probe or not asked.driven else {}
    return replace(run, measures={**run.measures, "loss": loss, **besides})


def make(
    asked: Contrast, folder: RunFolder, *, device: str, share: tuple[int, int] = (0, 1), parallel: int = 1
) -> Iterator[tuple[int, int]]:
    """Make the trials of this share that the folder has not; gives how many are done, and of how many."""
    first, count = share
    mine = [trial for number, trial in enumerate(asked.trials()) if number % count == first]
    left = [trial for trial in mine if not folder.has(trial.unit)]
    yield len(mine) - len(left), len(mine)
    begin = partial(torch.set_num_threads, max(1, torch.get_num_threads() // parallel))
    answers = in_processes(partial(try_, run=folder.run.id, device=device), left, parallel, begin)
    for done, (place, answer) in enumerate(answers, start=1):
        folder.write(left[place].unit, *answer)
        yield len(mine) - len(left) + done, len(mine)
