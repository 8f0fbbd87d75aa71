"""What is shown of a run, put together once for its page and its figures for print."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from isoscope.results.store import RunFolder
from isoscope.show.page.section import Section


@dataclass(frozen=True)
class Content:
    """What is shown of a run: the sections that figures for print are made of, and the text of its page."""

    sections: Sequence[Section]
    page: Callable[[], str]


def content(
    folder: RunFolder, sections: Sequence[Section], said: str, rows: pd.DataFrame | None = None
) -> Content:
    """The content of a run whose page has these sections under a headline; `rows` where not all are shown."""

    def text() -> str:
        from isoscope.show.page.page import page  # charts are made without a renderer

        shown = folder.frame() if rows is None else rows
        return page(folder.run, shown, folder.facts(), sections=sections, said=said)

    return Content(sections, text)
