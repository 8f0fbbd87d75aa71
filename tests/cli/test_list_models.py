"""`isoscope list models`: one line a model, with all that is needed to measure it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from isoscope.models.zoo import CORPUS, ZOO
from tests.conftest import Answer


def test_every_model_is_listed(isoscope: Callable[..., Answer]) -> None:
    answer = isoscope("list", "models")
    assert answer.code == 0
    lines = {line.split("│")[1].strip(): line for line in answer.out.splitlines() if line.startswith("│")}
    for entry in ZOO:
        line = lines[entry.name]
        for told in (entry.modality, entry.tokens, *entry.papers, entry.data):
            assert told in line, (entry.name, told)
    words = "".join(answer.out.replace("│", " ").split())
    for entry in ZOO:
        assert entry.hub.split("/")[0] in words
    assert all(address in answer.out for address in CORPUS.values())


def test_listing_them_does_not_wait_for_torch() -> None:
    code = "import sys; sys.argv = ['isoscope', 'list', 'models']\nfrom isoscope.cli.main import main\n"
    code += "try: main()\nexcept SystemExit: print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
