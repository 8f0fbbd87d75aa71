"""The kinds of runs: the one table that says what the page, terminal, figures and explanations of each are.

To add a kind, write the functions into a folder and add a line to `KINDS`. A kind that is not in the table
has the page, the terminal output and the figures of `measure`. Functions are named as "module:function" and
imported when they are called, so that the table itself imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from isoscope.kinds.screen import Screen
    from isoscope.results.store import RunFolder
    from isoscope.show.page.printed import Sections

Given = TypeVar("Given")
Explained = Mapping[str, Mapping[str, object]]
"""An explanation by name of a number: title, formula, what it says and how it misleads."""


def named(name: str) -> Any:
    """The object "module:name"."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


@dataclass(frozen=True)
class Of(Generic[Given]):
    """The function of a run folder that is called `name`, imported when it is called."""

    name: str

    def __call__(self, folder: RunFolder, *rest: object) -> Given:
        """Call it."""
        found: Given = named(self.name)(folder, *rest)
        return found


@dataclass(frozen=True)
class Told:
    """Explanations by "module:name", imported when they are asked for; a name is a mapping or a function."""

    names: tuple[str, ...]

    def __call__(self) -> Explained:
        """All of them in one mapping."""
        found: dict[str, Mapping[str, object]] = {}
        for each in map(named, self.names):
            found |= each() if callable(each) else each
        return found


_PAGE: Of[str] = Of("isoscope.kinds.measure.page:page_of")
_SCREEN: Of[Screen] = Of("isoscope.kinds.measure.screen:screen_of")
_SECTIONS: Of[Sections] = Of("isoscope.kinds.measure.page:sections_of")
_NOTHING = Told(())


@dataclass(frozen=True)
class Kind:
    """A kind of run: each field is a function of a run folder, `explains` one of nothing.

    `screen` takes the width of the terminal, too. `explains` gives the explanations of numbers that are no
    `Measure`. `sections` are those of the page, from which the figures for print are made; `prints` has the
    names of the figures that are written beside the page, as patterns.
    """

    name: str
    page: Callable[[RunFolder], str] = _PAGE
    screen: Callable[[RunFolder, int], Screen] = _SCREEN
    sections: Callable[[RunFolder], Sections] = _SECTIONS
    explains: Callable[[], Explained] = _NOTHING
    prints: tuple[str, ...] = ()


KINDS = (
    Kind("measure"),
    Kind("cloud"),
    Kind("weights", explains=Told(("isoscope.measures.on_data:EXPLANATIONS",))),
    Kind("compare", explains=Told(("isoscope.run.compare:EXPLANATIONS",))),
    Kind("training", explains=Told(("isoscope.run.monitor.gradients:EXPLANATIONS",))),
    Kind("demo"),
    Kind(
        "sweep",
        page=Of("isoscope.kinds.sweep.page:sweep_page"),
        screen=Of("isoscope.kinds.sweep.screen:screen_of"),
        sections=Of("isoscope.kinds.sweep.page:sections_of"),
        explains=Told(("isoscope.sweeps.together.explained:EXPLANATIONS",)),
        prints=("steps", "clouds"),
    ),
    Kind(
        "contrast",
        page=Of("isoscope.kinds.contrast.page:page_of"),
        screen=Of("isoscope.kinds.contrast.screen:screen_of"),
        sections=Of("isoscope.kinds.contrast.page:sections_of"),
        explains=Told(("isoscope.lab.contrast.trial:told_besides",)),
        prints=("contrast", "trials"),
    ),
    Kind(
        "block",
        page=Of("isoscope.kinds.block.page:page_of"),
        screen=Of("isoscope.kinds.block.screen:screen_of"),
        sections=Of("isoscope.kinds.block.page:sections_of"),
        explains=Told(("isoscope.lab.block.parts:EXPLANATIONS",)),
    ),
    Kind(
        "reproduce",
        page=Of("isoscope.kinds.reproduce.page:page_of"),
        screen=Of("isoscope.kinds.reproduce.screen:screen_of"),
        sections=Of("isoscope.kinds.reproduce.page:sections_of"),
        explains=Told(("isoscope.papers.paper:EXPLANATIONS",)),
        prints=("*",),
    ),
    Kind(
        "advise",
        page=Of("isoscope.kinds.advise.page:page_of"),
        sections=Of("isoscope.kinds.advise.page:sections_of"),
        screen=Of("isoscope.kinds.advise.screen:screen_of"),
        explains=Told(("isoscope.repair.advise.explained:EXPLAINED",)),
    ),
    Kind(
        "impact",
        page=Of("isoscope.kinds.impact.page:page_of"),
        sections=Of("isoscope.kinds.impact.page:sections_of"),
        screen=Of("isoscope.kinds.impact.screen:screen_of"),
        explains=Told(("isoscope.repair.impact.words:EXPLANATIONS",)),
        prints=("arrows",),
    ),
)
"""Every kind of run."""


def kind_of(name: str) -> Kind:
    """The kind of this name; one that is not in the table is shown as `measure` is."""
    return next((kind for kind in KINDS if kind.name == name), Kind(name))
