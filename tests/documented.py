"""Runs what a page of the documentation shows, block by block, as it stands or with less of the same.

It is called in a process that takes a hub on loopback for the hub, in a folder with the files that pages
speak of. What would take hours gets further options at the end of its line, of which the last counts: the
line is understood as it stands, and what it does is smaller.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from pydoc_data import topics
from signal import SIGINT

from PIL import Image

from isoscope.cli.main import main
from isoscope.lab.block.block import Setting
from isoscope.papers import scales

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted(page for page in (ROOT / "docs").glob("*.md") if page.name != "training.md"),
]  # docs/training.md is run by tests/integrations/test_docs_training.py

_SMALL_LAB = "--layers 1 --width 8 --heads 2 --length 8 --steps 2 --batch-size 2"
_ONE = "--seeds 1 --parallel 1 --device cpu"
_FEW = "--limit 2 --max-length 12 --measures mean_cosine --layers 'layer.*' --workers 0"
LESS = {
    "isoscope demo": "--steps 1",
    "isoscope train --steps 20000": _SMALL_LAB,
    "isoscope contrast characters --attention softmax,qk-norm,gated": f"{_SMALL_LAB} --only 0/60",
    "isoscope reproduce godey2024": f"--claims pre-norm-reversal {_ONE}",
    "isoscope reproduce machina2024": f"--claims input-against-output {_ONE} --data text=corpus.txt",
    "isoscope reproduce bao2024": f"--claims regimes {_ONE}",
    "isoscope sweep runs/": "--workers 0",
    "isoscope sweep EleutherAI/pythia-70m": f"{_FEW} --shard 0/7",
    "isoscope sweep EleutherAI/pythia-160m": "--shard 0/77 --workers 0 --length 16",
    "isoscope sweep allenai/OLMo-1B-hf": f"{_FEW} --engine local",
}
"""What is added to a line that begins so."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """The language and the text of every block of a page."""
    return re.findall(r"^```([\w{}]*)\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def lines(code: str) -> list[str]:
    """The commands of a block; one may go on in the next line."""
    return code.replace("\\\n", " ").strip().splitlines()


def run_page(page: Path) -> None:
    """Run every block of a page, in the folder where this process is."""
    _give_files()
    scales.SCALES = tuple(tiny(scale) for scale in scales.SCALES)
    for language, code in blocks(page):
        if language == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                # the tiny model of the tests takes 64 tokens
                exec(compile(code.replace("max_length=256", "max_length=64"), str(page), "exec"), {})
        elif language == "sh":
            for line in lines(code):
                run(line)


def run(line: str) -> None:
    """Run one command; what is put behind others with & is waited for."""
    words = shlex.split(line.removesuffix("&"), comments=True)
    if words[0] == "make":  # that the target is there; running it here would never end
        subprocess.run(["make", "--dry-run", *words[1:]], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return
    if words[0] == "hf":
        subprocess.run([str(Path(sys.executable).with_name("hf")), *words[1:]], check=True)
        return
    assert words[0] == "isoscope", f"'{line}' is no command of this project"
    words += [word for start, less in LESS.items() if line.startswith(start) for word in shlex.split(less)]
    words += ["--max-length", "64"] if "--max-length 128" in line else []
    if words[1] == "watch":  # until Ctrl-C
        threading.Timer(1.0, os.kill, (os.getpid(), SIGINT)).start()
    sys.argv = words
    try:
        main()
    except SystemExit as end:
        assert not end.code, f"'{line}' ended with {end.code}"


def _give_files() -> None:
    """The files that pages speak of, small."""
    text = "\n".join(topics.topics.values())[:8_000]
    for name in ("corpus.txt", "wikitext-2.txt"):
        Path(name).write_text(text)
    for colour in range(4):
        folder = Path("pictures") / "ab"[colour % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 16), (60 * colour, 30, 90)).save(folder / f"{colour}.png")


def tiny(scale: scales.Scale) -> scales.Scale:
    """A scale with the sizes of tests; public models, of which there are dozens, are not read."""
    size = scales.Size(1, 8, 2, 16, steps=2, batch_size=2, rate=1e-3, checkpoints="2")
    block = Setting(8, 2, 8, 8, passes=0)
    return replace(scale, arm=size, trajectory=size, block=block, bfloat16=False, public=False)
