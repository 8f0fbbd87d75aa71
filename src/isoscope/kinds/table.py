"""The kinds of runs: the one table that says what shows each of them.

To add a kind, write a module with `content_of` and `screen_of` and add a line to `KINDS`. A kind that is not
in the table is shown as `measure` is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from isoscope.kinds.screen import Screen
    from isoscope.results.store import RunFolder
    from isoscope.show.page.content import Content

Explained = Mapping[str, Mapping[str, object]]
"""An explanation by name of a number: title, formula, what it says and how it misleads."""


def named(address: str) -> Any:
    """The object "module:name"."""
    module, _, attribute = address.partition(":")
    return getattr(import_module(module), attribute)


@dataclass(frozen=True)
class Kind:
    """A kind of run; its modules are imported when something of it is shown.

    `home` is the module that has `content_of` and `screen_of`.
    `told` names the explanations of numbers that are no `Measure`: a mapping, or a function that gives one.
    `prints` are the names of the figures that are written beside the page, or "*" for all.
    """

    name: str
    home: str = "isoscope.kinds.measure.shown"
    told: str = ""
    prints: tuple[str, ...] = ()

    def content(self, folder: RunFolder) -> Content:
        """What is shown of a run: the sections of its page, and the text of `report.html`."""
        return cast("Content", named(f"{self.home}:content_of")(folder))

    def screen(self, folder: RunFolder, width: int) -> Screen:
        """The output of a terminal of this width."""
        return cast("Screen", named(f"{self.home}:screen_of")(folder, width))

    def explains(self) -> Explained:
        """The explanations of numbers that are no `Measure`."""
        found = named(self.told) if self.told else {}
        return cast("Explained", found() if callable(found) else found)


KINDS = (
    Kind("measure"),
    Kind("cloud"),
    Kind("weights", told="isoscope.measures.on_data:EXPLANATIONS"),
    Kind("compare", told="isoscope.run.compare:EXPLANATIONS"),
    Kind("training", told="isoscope.run.monitor.gradients:EXPLANATIONS"),
    Kind("sweep", "isoscope.kinds.sweep.page", "isoscope.sweeps.together.explained:EXPLANATIONS",
         ("steps", "clouds")),
    Kind("contrast", "isoscope.kinds.contrast", "isoscope.lab.contrast.trial:told_besides",
         ("contrast", "trials")),
    Kind("block", "isoscope.kinds.block", "isoscope.lab.block.parts:EXPLANATIONS"),
    Kind("reproduce", "isoscope.kinds.reproduce", "isoscope.papers.paper:EXPLANATIONS", ("*",)),
    Kind("advise", "isoscope.kinds.advise.page", "isoscope.repair.advise.pairs:EXPLAINED"),
    Kind("impact", "isoscope.kinds.impact", "isoscope.repair.impact.words:EXPLANATIONS", ("arrows",)),
)  # fmt: skip


def kind_of(name: str) -> Kind:
    """The kind of this name."""
    return next((kind for kind in KINDS if kind.name == name), Kind(name))
