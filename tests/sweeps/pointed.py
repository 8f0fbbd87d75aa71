"""Processes that take a hub on loopback for the hub, without importing everything again for each.

One process is started with the hub's address in its environment, imports what is needed, and forks for every
piece of code that it is given: each runs alone, can be watched, and can be killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.sweeps.fake_hub import Hub, environment, served

COMMANDS = (
    "isoscope.cli.main", "isoscope.run.observe.observe", "isoscope.kinds.report", "isoscope.papers.table",
    "torch._dynamo", "transformers.models.bert.modeling_bert",
    "transformers.models.gpt_neox.modeling_gpt_neox",
    "matplotlib.pyplot", "plotly.graph_objs._figure", "plotly.graph_objs._scatter", "sklearn.cluster",
)  # fmt: skip
"""Modules that most commands import. The forking process imports them once, which saves seconds per fork."""

_FORKING = """
import json, os, sys, traceback
import huggingface_hub, transformers
import isoscope.sweeps.verify.integrity, isoscope.sweeps.fetch.shelf
for name in sys.argv[1:]:
    __import__(name)
from huggingface_hub import HfApi, hf_hub_download
for line in sys.stdin:
    told = json.loads(line)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for number, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(told[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.argv = ["-c", *told["words"]]
            exec(compile(told["code"], "given", "exec"), {"__name__": "__main__"})
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass
class Running:
    """One piece of code that runs."""

    pid: int
    folder: Path
    ended: Callable[[], int]

    def out(self) -> list[str]:
        """The lines that it has printed so far."""
        return (self.folder / "out").read_text().splitlines()

    def wait(self, look: Callable[[], None] = lambda: None) -> list[str]:
        """What it printed in all; `look` is called all the time until it ends."""
        while not self.is_dead():
            look()
            time.sleep(0.001)
        code, err = self.ended(), (self.folder / "err").read_text()
        assert code == 0 and not err, err
        return self.out()

    def wait_for(self, line: str) -> None:
        """Wait until it has printed a line that begins so."""
        until = time.monotonic() + 60
        while not any(each.startswith(line) for each in self.out()):
            assert time.monotonic() < until and not self.is_dead(), (self.folder / "err").read_text()
            time.sleep(0.002)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        assert self.ended() == -signal.SIGKILL

    def is_dead(self) -> bool:
        """Whether it has ended."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            return True


@dataclass
class Pointed:
    """A hub, and the process that is pointed at it."""

    hub: Hub
    process: subprocess.Popen[str]

    def run(self, folder: Path, code: str, *words: object) -> Running:
        """Run a piece of code; what it prints goes to files in `folder`."""
        assert self.process.stdin is not None and self.process.stdout is not None
        folder.mkdir(parents=True, exist_ok=True)
        files = {name: str(folder / name) for name in ("out", "err")}
        for file in files.values():
            Path(file).write_text("")
        self.process.stdin.write(json.dumps({"code": code, "words": [*map(str, words)], **files}) + "\n")
        self.process.stdin.flush()
        answers = self.process.stdout
        return Running(int(answers.readline()), folder, lambda: int(answers.readline()))


@contextmanager
def pointed(folder: Path, *imports: str) -> Iterator[Pointed]:
    """A hub with nothing on it yet, and a process that is pointed at it; its cache is in `folder`.

    `imports` are what the pieces of code need beside what belongs to the hub.
    """
    with served(Hub({})) as hub:
        process = subprocess.Popen(
            [sys.executable, "-c", _FORKING, *imports],
            env=environment(hub, folder / "cache"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield Pointed(hub, process)
        finally:
            process.communicate()
