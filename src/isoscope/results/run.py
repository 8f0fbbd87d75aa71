"""A Run is where rows come from: the question that fixes them, and the versions that answered it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

SCHEMA = 1
"""The version of a run folder's format, which `docs/format.md` specifies."""


@dataclass(frozen=True)
class Run:
    """What was asked, and with what: everything that fixes the rows is in `question`.

    `measures` carries every measure's own explanation, so that a page can be written from the folder
    alone, by a version of isoscope that no longer has the measure.
    """

    kind: str
    title: str
    question: Mapping[str, object]
    measures: Mapping[str, Mapping[str, object]]
    versions: Mapping[str, str] = field(default_factory=dict)
    created: str = ""
    schema: int = SCHEMA

    @property
    def id(self) -> str:
        """Twelve hex digits of what was asked: the same question has the same id."""
        text = json.dumps([self.schema, self.kind, self.question], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def to_json(self) -> str:
        """As `run.json` has it."""
        return json.dumps({"id": self.id, **asdict(self)}, indent=2, ensure_ascii=False)
