"""A microscope for the geometry of neural representations."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoscope import plot
    from isoscope.data.batch import Batch
    from isoscope.data.text import text
    from isoscope.errors import IsoscopeError
    from isoscope.geometry.propagation import signal_propagation
    from isoscope.kernels.attention.rows import attention_rows
    from isoscope.kernels.partition import partition_isotropy
    from isoscope.kernels.spectra import qk_spectrum
    from isoscope.kinds.advise.make import advise
    from isoscope.kinds.report import report
    from isoscope.kinds.sweep.make import sweep
    from isoscope.measures.table import MEASURES
    from isoscope.models.source import load
    from isoscope.repair.impact.run import impact
    from isoscope.results.store import read_run
    from isoscope.run.compare import changes, compare
    from isoscope.run.monitor.alarms import Alarm
    from isoscope.run.monitor.monitor import Monitor
    from isoscope.run.observe.observation import Observation
    from isoscope.run.observe.observe import describe, observe
    from isoscope.run.weigh.weigh import weigh

__version__ = "0.1.0"
__all__ = [
    "MEASURES",
    "Alarm",
    "Batch",
    "IsoscopeError",
    "Monitor",
    "Observation",
    "advise",
    "attention_rows",
    "changes",
    "compare",
    "describe",
    "impact",
    "load",
    "observe",
    "partition_isotropy",
    "plot",
    "qk_spectrum",
    "read_run",
    "report",
    "signal_propagation",
    "sweep",
    "text",
    "weigh",
]

_HOMES = {
    "MEASURES": "measures.table",
    "Alarm": "run.monitor.alarms",
    "Batch": "data.batch",
    "IsoscopeError": "errors",
    "Monitor": "run.monitor.monitor",
    "Observation": "run.observe.observation",
    "advise": "kinds.advise.make",
    "attention_rows": "kernels.attention.rows",
    "changes": "run.compare",
    "compare": "run.compare",
    "describe": "run.observe.observe",
    "impact": "repair.impact.run",
    "load": "models.source",
    "observe": "run.observe.observe",
    "partition_isotropy": "kernels.partition",
    "qk_spectrum": "kernels.spectra",
    "read_run": "results.store",
    "report": "kinds.report",
    "signal_propagation": "geometry.propagation",
    "sweep": "kinds.sweep.make",
    "text": "data.text",
    "weigh": "run.weigh.weigh",
}


def __getattr__(name: str) -> Any:
    if name == "plot":
        return import_module("isoscope.plot")
    if name not in _HOMES:
        raise AttributeError(f"module 'isoscope' has no attribute '{name}'")
    return getattr(import_module(f"isoscope.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
