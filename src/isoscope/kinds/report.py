"""What a run shows, whatever its kind: its page, its terminal output, its figures, as data and as files."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from isoscope.errors import IsoscopeError
from isoscope.kinds.screen import WIDTH, Screen
from isoscope.kinds.table import kind_of
from isoscope.results.store import RunFolder, read_run, write_file

if TYPE_CHECKING:
    from isoscope.show.draw.matplotlib.sheet import Offered
    from isoscope.show.page.content import Content

FORMATS = ("svg", "pdf")  # in which figures are written beside a page


class Reported(Protocol):
    """What was measured and is in no run folder, such as an `Observation`; it writes its own page."""

    def report(self, path: str | PathLike[str] = ...) -> Path:
        """Write the page and return its path."""


@dataclass(frozen=True)
class Written:
    """The files that were written for a run, and why others were not."""

    page: Path | None
    figures: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def report(run: str | PathLike[str] | RunFolder | Reported, path: str | PathLike[str] | None = None) -> Path:
    """Write the page of a run, and return its path.

    `run` is a run folder or its path, or something that was just measured: an `Observation`, or what `weigh`
    returns. Without a `path` the page of a run folder is its `report.html`, with figures for print where its
    kind has some; anything else is written to `report.html` in the working directory.
    """
    if not isinstance(run, str | PathLike | RunFolder):
        return run.report(path) if path is not None else run.report()
    folder = run if isinstance(run, RunFolder) else read_run(Path(run))
    if path is not None:
        return write_file(path, page_of(folder).encode())
    written = write(folder)
    if written.page is None:
        raise IsoscopeError(f"{'; '.join(written.notes)}.")
    return written.page


def page_of(folder: RunFolder) -> str:
    """The text of `report.html`, from the rows that are in the folder now."""
    return kind_of(folder.run.kind).content(folder).page()


def screen_of(folder: RunFolder, width: int = WIDTH) -> Screen:
    """The terminal output of a run, on a terminal of this many columns."""
    if not folder.files():
        raise IsoscopeError(f"{folder.path} holds no rows yet; go on with the command that began it.")
    return kind_of(folder.run.kind).screen(folder, width)


def figures(folder: RunFolder, content: Content | None = None) -> dict[str, Offered]:
    """The figures of the sections of a run by name, the most important first; `offered.draw()` draws one."""
    from isoscope.show.page.printed import offered

    return offered((content or kind_of(folder.run.kind).content(folder)).sections) if folder.units() else {}


def write(folder: RunFolder) -> Written:
    """Write the page and the figures for print into the folder, as far as their libraries are installed."""
    kind, notes = kind_of(folder.run.kind), list[str]()
    page, drawn, content = None, dict[str, bytes](), None
    try:
        content = kind.content(folder)
        page = folder.write_page(content.page())
    except ImportError as missing:
        notes.append(f"no page was written: {missing.name} is not installed")
    try:
        for name, one in figures(folder, content).items() if kind.prints else ():
            if {"*", name}.intersection(kind.prints):
                drawn |= {f"{name}.{suffix}": one.bytes(suffix, "double") for suffix in FORMATS}
    except (ImportError, IsoscopeError) as reason:
        notes.append(f"no figure was written: {reason}")
    files = tuple(write_file(folder.path / "figures" / name, body) for name, body in drawn.items())
    return Written(page, files, tuple(notes))
