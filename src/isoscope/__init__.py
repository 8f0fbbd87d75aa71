"""A microscope for the geometry of neural representations."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoscope.data.batch import Batch
    from isoscope.data.text import text
    from isoscope.errors import IsoscopeError
    from isoscope.kernels.attention import attention_rows
    from isoscope.measures.table import MEASURES
    from isoscope.models.source import load
    from isoscope.results.store import read_run
    from isoscope.run.observation import Observation
    from isoscope.run.observe import describe, observe

__version__ = "0.1.0"
__all__ = [
    "MEASURES",
    "Batch",
    "IsoscopeError",
    "Observation",
    "attention_rows",
    "describe",
    "load",
    "observe",
    "read_run",
    "text",
]

_HOMES = {
    "MEASURES": "measures.table",
    "Batch": "data.batch",
    "IsoscopeError": "errors",
    "Observation": "run.observation",
    "attention_rows": "kernels.attention",
    "describe": "run.observe",
    "load": "models.source",
    "observe": "run.observe",
    "read_run": "results.store",
    "text": "data.text",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'isoscope' has no attribute '{name}'")
    return getattr(import_module(f"isoscope.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
