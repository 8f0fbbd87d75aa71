"""A run that is being written, looked at again and again: its newest page, and what is the matter since.

One thread looks and draws, and only while somebody asks: a page that nobody sees costs the training
nothing. A page that cannot be drawn leaves the one before in its place, with the reason. Links out of the
run are not read.

The page is served with a bar, and a script that asks for newer ones: the policy lets that script run and ask
this server, nothing else. A page that did not change has the same version and is not loaded again. What draws
is a script of its own, which a browser reads once.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import math
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path

from markupsafe import Markup

from isoscope.errors import IsoscopeError
from isoscope.results.row import COLUMNS
from isoscope.results.store import read_unit
from isoscope.results.units import step_of
from isoscope.show.draw.plotly.charts import carried, library
from isoscope.show.page.markup import asset, content_policy, script_digest, templates
from isoscope.show.say.words import CLAIM

PAUSE = 0.25  # seconds between two looks at the folder; after a page that took long, a quarter of that
_OF_LATE = 15.0  # seconds: who has not asked for so long has gone
_AGAIN = 5.0  # seconds until what failed is tried again though no file has changed
_LONGEST = 240  # characters of a reason
_PARTS = ("rows", "points")
_MOST = 2  # numbers of the loop's own in a line on newer rows
State = tuple[tuple[str, int, int], ...]  # name, size and time (ns) of every file that the page is read from
_META = '<meta http-equiv="Content-Security-Policy" content="'
_ALONE = "This page is one file and asks nothing of the network."
_ASKS = "This page asks <code>isoscope watch</code> for newer rows, and nothing else of the network."
_BAR = (
    '<aside id="watch" data-version="{version}" aria-label="Watching"><span role="status"></span> '
    '<label><input type="checkbox" checked> follow</label></aside>\n<script>{script}</script>\n'
)
_CARRIED = '<script type="application/gzip" id="library">{}</script>'
NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The policy of an answer that is no page."""


@dataclass(frozen=True)
class Served:
    """A page or script as it is served: its version, its bytes, the same compressed, and its policy."""

    version: str
    body: bytes
    packed: bytes
    policy: str = NOTHING

    @property
    def name(self) -> str:
        """What the script that draws is called, which changes with what is in it."""
        return f"plotly-{self.version}.js"


def watched_page(text: str) -> Served:
    """The page of a run with the bar and its script, allowed by the page's own policy."""
    text = text.replace(_CARRIED.format(carried()), f'<script src="{served_library().name}"></script>', 1)
    version = _version(text.encode())
    head, meta, rest = text.partition(_META)
    policy, end, body = rest.partition('">')
    main, close, tail = body.rpartition("</body>")
    if not (meta and end and close and "script-src " in policy):
        raise ValueError("the page has no policy and body as isoscope's pages have")
    script = asset("watch.js")
    allowed = f"script-src 'self' {script_digest(script)} "
    policy = html.unescape(policy).replace("script-src ", allowed, 1) + "; connect-src 'self'"
    content, last, footer = main.rpartition(_ALONE)
    main = f"{content}{_ASKS if last else ''}{footer}"
    icon = '\n<link rel="icon" href="data:,">'  # else the browser asks for one that is not there
    style = f"{icon}\n<style>{asset('watch.css')}</style>"
    bar = _BAR.format(version=version, script=script)
    made = f"{head}{meta}{html.escape(policy)}{end}{style}{main}{bar}{close}{tail}".encode()
    packed = gzip.compress(made, 1, mtime=0)  # for those who watch through a tunnel
    return Served(version, made, packed, f"{policy}; frame-ancestors 'none'")


def waiting_page(name: str) -> Served:
    """The page until there is one."""
    css = Markup(asset("page.css"))
    waiting = templates().get_template("waiting.html")
    return watched_page(waiting.render(name=name, css=css, policy=content_policy()))


@cache
def served_library() -> Served:
    """The script that draws, as it is served: once for all pages."""
    body = library().encode()
    return Served(_version(body), body, gzip.compress(body, 1, mtime=0))


def _version(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]


@dataclass(frozen=True)
class Look:
    """What is shown: the page, when its newest rows came (None before the first), and what is wrong since."""

    page: Served
    newest: float | None = None
    trouble: str = ""
    drawing: bool = False
    come: str = ""

    @property
    def said(self) -> str:
        """The line that stands on the page; it has the day where that is not today."""
        of = ""
        if self.newest is not None:
            when = datetime.fromtimestamp(self.newest)
            day = "" if when.date() == datetime.now().date() else f"{when:%Y-%m-%d} "
            of = f"as of {day}{when:%H:%M:%S}"
        come = f"{self.come}; drawing it" if self.come else ""
        since = self.trouble or come or ("drawing newer rows" if self.drawing and of else "")
        return "; ".join(filter(None, [of, since])) or "reading the rows"


class Watch:
    """A run folder, and the newest page of it that could be drawn by `render`."""

    def __init__(self, run: Path, render: Callable[[Path], str]) -> None:
        self.run = run
        self._render = render
        self._look = Look(waiting_page(str(run)))
        self._drawn: State | None = None  # what the last attempt was made of
        self._again_at = math.inf
        self._told: tuple[tuple[float, Path], str] = ((-math.inf, run), "")
        self._asked = threading.Event()
        self._asked_at = -_OF_LATE

    def ask(self) -> Look:
        """What there is to show, now; says that somebody is watching."""
        self._asked_at = time.monotonic()
        self._asked.set()
        return replace(self._look, come=self._come())

    @property
    def trouble(self) -> str:
        """What is waited for or went wrong at the last look; empty where nothing is."""
        return self._look.trouble

    def look(self) -> bool:
        """Draw the page anew if the folder has changed since; whether it was drawn."""
        try:
            there = state(self.run)
            lacking = wanting(self.run, there)
            if lacking:
                self._drawn = None
                self._look = replace(self._look, trouble=lacking)
                return False
            if there == self._drawn and time.monotonic() < self._again_at:
                return False
            self._drawn, self._again_at = there, math.inf
            self._look = replace(self._look, drawing=True)
            refuse_links(self.run, [*(self.run / part for part in _PARTS), *_files(self.run)])
            page = watched_page(self._render(self.run))
        except Exception as reason:  # noqa: BLE001  half a run may break anything; the watch goes on
            self._again_at = time.monotonic() + _AGAIN
            # in one line, without where the run is; of a defect, its kind is said too
            text = " ".join(str(reason).split()).replace(f"{self.run}{os.sep}", "")[:_LONGEST]
            what = text if isinstance(reason, IsoscopeError) else f"{type(reason).__name__}: {text}"
            self._look = replace(self._look, trouble=f"newer rows cannot be shown: {what}", drawing=False)
            return False
        self._look = Look(
            page, max(when for name, _, when in there if Path(name).parent.name == "rows") / 1e9
        )
        return True

    def _come(self) -> str:
        """The newest file of rows in a line of numbers, where the page does not show it yet."""
        shown = self._look.newest
        try:
            found = newest_file(self.run / "rows")
            if found is None or (shown is not None and found[0] <= shown):
                return ""
            if self._told[0] != found:
                refuse_links(self.run, [found[1]])
                self._told = (found, told_of(found[1]))
            return self._told[1]
        except Exception:  # noqa: BLE001  what is wrong with it is said when it is drawn
            return ""

    def keep_looking(self, stop: threading.Event, say: Callable[[str], None] = lambda trouble: None) -> None:
        """Look until told to stop, while somebody asks; `say` is told what is wrong when that changes."""
        said = ""
        while not stop.is_set():
            began = time.monotonic()
            if self._look.newest is None or began - self._asked_at < _OF_LATE:
                self.look()
                if self.trouble != said:
                    said = self.trouble
                    say(said)
                stop.wait(max(PAUSE, (time.monotonic() - began) / 4))
            else:
                self._asked.clear()
                self._asked.wait(PAUSE)


def _files(run: Path) -> list[Path]:
    found = [run / "run.json"]
    for part in _PARTS:
        with suppress(FileNotFoundError, NotADirectoryError):
            found += [file for file in (run / part).iterdir() if file.suffix == ".parquet"]
    return found


def state(run: Path) -> State:
    """The files that a page is read from, as they are now; files that go meanwhile are left out."""
    found = []
    for file in _files(run):
        with suppress(FileNotFoundError, NotADirectoryError):
            stat = file.stat()
            found.append((file.relative_to(run).as_posix(), stat.st_size, stat.st_mtime_ns))
    return tuple(sorted(found))


def newest_file(rows: Path) -> tuple[float, Path] | None:
    """The file of rows that came last, and when, in seconds; None where there is none."""
    return max(((file.stat().st_mtime_ns / 1e9, file) for file in rows.glob("*.parquet")), default=None)


def told_of(file: Path) -> str:
    """What a unit is called, what its loop tells of it, and its largest mean cosine."""
    table, known = read_unit(file, COLUMNS)
    own = table[table["value"].notna() & table["head"].isna()]
    loop = own[own["kind"] == "training"].head(_MOST)
    parts = [f"{name} {value:.4g}" for name, value in zip(loop["measure"], loop["value"], strict=True)]
    cosines = own.loc[own["measure"] == CLAIM, "value"]
    parts += [f"mean cosine up to {cosines.max():.3g}"] if len(cosines) else []
    steps, unit = table["step"].dropna().unique(), str(known["unit"])
    unit = f"step {steps[0]:,}" if len(steps) == 1 and step_of(unit) == steps[0] else unit
    return f"{unit} has come{': ' if parts else ''}{', '.join(parts)}"


def wanting(run: Path, there: State) -> str:
    """What is waited for; empty where there is a run with rows."""
    files = [Path(name) for name, _, _ in there]
    lacking = (
        "the folder is not there" if not run.is_dir()
        else "it has no run.json" if Path("run.json") not in files
        else "it has no rows" if not any(file.parent.name == "rows" for file in files)
        else ""
    )  # fmt: skip
    return f"waiting for {run}: {lacking}" if lacking else ""


def refuse_links(run: Path, files: Iterable[Path]) -> None:
    """Raise where one of these files or folders is a link that leads out of the run."""
    for file in files:
        if not file.resolve().is_relative_to(run.resolve()):
            raise IsoscopeError(
                f"{file} is a link that leads out of the run folder, and a watched run is read from its own "
                "folder alone; put the file there, or make the page with `isoscope report`."
            )
