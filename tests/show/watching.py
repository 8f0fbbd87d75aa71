"""A watched run to ask questions of: a folder that can be written, spoilt and removed, and a real server."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import NamedTuple

from isoscope.results.store import open_run, read_run
from isoscope.show.watch.serve import PageServer, answering, open_server
from isoscope.show.watch.watch import Watch
from tests.show.made_training import a_training, facts, watched

POLICY = "default-src &#39;none&#39;; script-src &#39;sha256-x&#39;; style-src &#39;unsafe-inline&#39;"


class Answer(NamedTuple):
    status: int
    headers: HTTPMessage
    text: str


def write_step(run: Path, step: int) -> Path:
    """Keep one look of a hand-made training, and say in which file."""
    before = set((run / "rows").glob("*.parquet")) if run.exists() else set()
    folder = open_run(run, a_training())
    unit = f"step {step:06d}"
    folder.write(unit, watched([step]), facts([step])[unit])
    (made,) = set((run / "rows").glob("*.parquet")) - before
    return made


def small_page(run: Path) -> str:
    """A page with the steps that are there, and nothing to draw."""
    steps = sorted(set(map(int, read_run(run).frame()["step"])))
    return (
        f'<head><meta http-equiv="Content-Security-Policy" content="{POLICY}"><title>t</title></head>'
        f"<body><main>steps: {steps}</main></body>"
    )


@contextmanager
def served(server: PageServer) -> Iterator[PageServer]:
    """A server that answers until the end of the block."""
    with answering(server):
        yield server


@contextmanager
def serving(watch: Watch) -> Iterator[PageServer]:
    with served(open_server(watch, port=0)) as server:
        yield server


def get(server: PageServer, path: str = "/", *, method: str = "GET", **headers: str) -> Answer:
    """What is answered to a path as it stands: nothing is made plain on the way."""
    link = HTTPConnection(str(server.server_address[0]), int(server.server_address[1]), timeout=10)
    try:
        link.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            link.putheader(name.replace("_", "-"), value)
        link.endheaders()
        answer = link.getresponse()
        return Answer(answer.status, answer.headers, answer.read().decode("utf-8", "replace"))
    finally:
        link.close()


def version(url: str) -> dict[str, str]:
    with urllib.request.urlopen(f"{url}version", timeout=10) as answer:
        told: dict[str, str] = json.load(answer)
    return told


def until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until it is so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
