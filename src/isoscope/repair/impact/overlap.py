"""What is fitted on is not judged on: a text in both, or texts that are one input, are refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from isoscope.errors import IsoscopeError
from isoscope.repair.impact.tasks import Labelled, Task

_SHOWN = 60  # letters of a text in a message


@dataclass(frozen=True, eq=False)
class Split:
    """Texts that repairs are fitted on, and tasks, with no text in both; `notes` say what was left out."""

    fitted: Sequence[str]
    tasks: Sequence[Task]
    notes: tuple[str, ...] = ()

    @property
    def judged(self) -> list[str]:
        """All texts that are judged, each once."""
        return list(dict.fromkeys(text for task in self.tasks for text in task.judged))

    @property
    def texts(self) -> list[str]:
        """All texts, each once."""
        others = (text for task in self.tasks for text in task.fitted)
        return list(dict.fromkeys([*self.fitted, *self.judged, *others]))


def hold_apart(split: Split, *, leave_out: bool = False, keys: Mapping[str, object] | None = None) -> Split:
    """Refuse texts both fitted on and judged on, or fit without them; texts of equal `keys` are one."""
    keys = {text: text for text in split.texts} if keys is None else keys
    notes = list(split.notes)
    fitted, note = _apart(split.fitted, split.judged, keys, "repairs are fitted on", leave_out)
    notes += filter(None, [note])
    tasks: list[Task] = []
    for task in split.tasks:
        what = f"the probe of {task.name} is fitted on"
        kept, note = _apart(task.fitted, task.judged, keys, what, leave_out)
        notes += filter(None, [note])
        if note and isinstance(task, Labelled):
            task = task.without(set(task.fitted) - set(kept))
        tasks.append(task)
    if len(fitted) < 2:
        raise IsoscopeError(f"repairs are fitted on at least 2 texts that are not judged; got {len(fitted)}.")
    return Split(fitted, tasks, tuple(notes))


def _apart(
    fitted: Sequence[str], judged: Iterable[str], keys: Mapping[str, object], what: str, leave_out: bool
) -> tuple[list[str], str]:
    judged = set(judged)
    known = {keys[text] for text in judged}
    both = [text for text in fitted if keys[text] in known]
    if not both:
        return list(fitted), ""
    alike = "judged as well" if judged & set(both) else "the same as judged ones once tokenized"
    if not leave_out:
        shown = both[0] if len(both[0]) <= _SHOWN else f"{both[0][: _SHOWN - 1]}…"
        raise IsoscopeError(
            f"{len(both)} of the {len(fitted)} texts that {what} are {alike}, first '{shown}'; "
            "give others, or --leave-out-overlap to fit without them."
        )
    gone = set(both)
    return [text for text in fitted if text not in gone], (
        f"{len(both)} of the {len(fitted)} texts that {what} are {alike} and were left out of the fit"
    )
