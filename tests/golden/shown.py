"""What a person sees of a run folder, as text that can be compared: page, figures, terminal and print.

The page is compared without the definitions of measures, which are texts of the run, and without provenance.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

from isoscope.kinds.report import figures, page_of
from isoscope.results.store import RunFolder

_INLINE = {"a", "abbr", "b", "code", "em", "i", "label", "small", "span", "strong", "sub", "sup"}
_UNSEEN = {"script", "style", "svg", "select"}
_CELLS = {"td", "th", "dt"}


class _Reader(HTMLParser):
    """Collect the text of a page, one line per block and per row of a table, and the JSON of its figures."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.figures: list[str] = []
        self._line = ""
        self._open: list[str] = []
        self._json = False
        self._skipped, self._skips = 0, ""

    def _end_line(self) -> None:
        line = " ".join(self._line.split())
        if line:
            self.lines.append(line)
        self._line = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._skipped:
            self._skipped += tag == self._skips
        elif ("class", "explained") in attrs or ("id", "provenance") in attrs:
            self._end_line()
            self._skipped, self._skips = 1, tag
        elif tag in _UNSEEN:
            self._open.append(tag)
            self._json = tag == "script" and ("type", "application/json") in attrs
            if self._json:
                self.figures.append("")
        elif tag not in _INLINE and tag not in _CELLS:
            self._end_line()

    def handle_endtag(self, tag: str) -> None:
        if self._skipped:
            self._skipped -= tag == self._skips
        elif self._open and tag == self._open[-1]:
            self._open.pop()
            self._json = False
        elif tag in _CELLS:
            self._line += " | "
        elif tag not in _INLINE and not self._open:
            self._end_line()

    def handle_data(self, data: str) -> None:
        if self._json:
            self.figures[-1] += data
        elif not self._open and not self._skipped:
            self._line += data


def _rounded(value: Any) -> Any:
    """The value with every number rounded to nine digits, so that the last bits of a fit do not matter."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, Mapping):
        return {name: _rounded(each) for name, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value


_DATA = ("type", "name", "x", "y", "z", "text", "hovertext", "customdata")


def _figure(text: str) -> Any:
    """The data of a figure: of each trace its name and numbers; anything else that a page carries, whole."""
    told = json.loads(text)
    if not isinstance(told, dict) or "data" not in told:
        return _rounded(told)
    traces = []
    for trace in told["data"]:
        kept = {name: trace[name] for name in _DATA if trace.get(name) is not None}
        bars = trace.get("error_y") or {}
        traces.append(kept | {name: bars[name] for name in ("array", "arrayminus") if name in bars})
    return _rounded(traces)


def page(folder: RunFolder) -> tuple[list[str], list[Any]]:
    """The lines of the page, and the data of its figures."""
    reader = _Reader()
    reader.feed(page_of(folder))
    return reader.lines, [_figure(text) for text in reader.figures]


def printed(folder: RunFolder) -> dict[str, dict[str, Any]]:
    """Each figure of several measures: texts and counts of marks on its axes, and the SHA-256 of its SVG."""
    return {name: _printed(one) for name, one in figures(folder).items() if not one.alone}


def _printed(offered: Any) -> dict[str, Any]:
    drawn = offered.draw("double")
    axes = [
        {
            "title": ax.get_title(loc="left") or ax.get_title(),
            "x": ax.get_xlabel(),
            "y": ax.get_ylabel(),
            "texts": [text.get_text() for text in ax.texts],
            "marks": [len(ax.lines), len(ax.collections), len(ax.images), len(ax.patches)],
        }
        for ax in drawn.axes
    ]
    svg = offered.bytes("svg", "double")
    return {"says": offered.says, "axes": axes, "svg": hashlib.sha256(svg).hexdigest()[:16]}
