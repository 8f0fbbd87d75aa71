"""A page as it is served while its run is being written: with a bar, and a script that asks for newer ones.

The policy lets that script run and ask this server, nothing else. A page that did not change has the same
version and is not loaded again. What draws is a script of its own, which a browser reads once.
"""

from __future__ import annotations

import gzip
import hashlib
import html
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from markupsafe import Markup

from isoscope.show.draw.plotly.charts import carried, library
from isoscope.show.page.markup import asset, content_policy, script_digest, templates

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
    script = _file("watch.js")
    allowed = f"script-src 'self' {script_digest(script)} "
    policy = html.unescape(policy).replace("script-src ", allowed, 1) + "; connect-src 'self'"
    content, last, footer = main.rpartition(_ALONE)
    main = f"{content}{_ASKS if last else ''}{footer}"
    icon = '\n<link rel="icon" href="data:,">'  # else the browser asks for one that is not there
    style = f"{icon}\n<style>{_file('watch.css')}</style>"
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


@cache
def _file(name: str) -> str:
    return files("isoscope.show.watch").joinpath(name).read_text(encoding="utf-8")
