"""Figures for print and notebooks: every function draws on matplotlib axes and returns them.

Each takes rows as `frame()` gives them (or points as `points()` does) and an optional `ax`; without one it
opens a figure of its own. Nothing is imported before a function is asked for, matplotlib least of all. No
file here has the name of a function: once imported it would stand in its place.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoscope.kinds.report import figures
    from isoscope.plot.along_layers import layers
    from isoscope.plot.along_steps import steps
    from isoscope.plot.blocks import block, passes, scores, stages
    from isoscope.plot.comparison import scatter
    from isoscope.plot.contrasts import contrast, trials
    from isoscope.plot.maps import heads, layers_by_steps
    from isoscope.plot.pairs import clouds
    from isoscope.plot.planes import plane
    from isoscope.plot.spectra import eigenvalues, propagation
    from isoscope.plot.values import dots, sites
    from isoscope.show.draw.matplotlib.sheet import Offered
    from isoscope.show.draw.matplotlib.style import style

__all__ = [
    "Offered",
    "block",
    "clouds",
    "contrast",
    "dots",
    "eigenvalues",
    "figures",
    "heads",
    "layers",
    "layers_by_steps",
    "passes",
    "plane",
    "propagation",
    "scatter",
    "scores",
    "sites",
    "stages",
    "steps",
    "style",
    "trials",
]

_HOMES = {
    "Offered": "show.draw.matplotlib.sheet",
    "block": "plot.blocks",
    "clouds": "plot.pairs",
    "contrast": "plot.contrasts",
    "dots": "plot.values",
    "eigenvalues": "plot.spectra",
    "figures": "kinds.report",
    "heads": "plot.maps",
    "layers": "plot.along_layers",
    "layers_by_steps": "plot.maps",
    "passes": "plot.blocks",
    "plane": "plot.planes",
    "propagation": "plot.spectra",
    "scatter": "plot.comparison",
    "scores": "plot.blocks",
    "sites": "plot.values",
    "stages": "plot.blocks",
    "steps": "plot.along_steps",
    "style": "show.draw.matplotlib.style",
    "trials": "plot.contrasts",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'isoscope.plot' has no attribute '{name}'")
    return getattr(import_module(f"isoscope.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
