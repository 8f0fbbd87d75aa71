"""A hub id without a network: the local cache answers, for the branch or for the revision asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from isoscope.models.source import fingerprint
from tests.models import tiny

SHA = {"main": "1" * 40, "step1000": "2" * 40}

_SCRIPT = """
import json, sys
import isoscope
from isoscope.models.source import fingerprint

said = {}
for name, address, revision in json.loads(sys.argv[1]):
    try:
        loaded = isoscope.load(address, revision=revision)
        tokens = len(loaded.tokenizer("ab")["input_ids"])
        said[name] = [loaded.name, loaded.revision, fingerprint(loaded.module), tokens]
    except isoscope.IsoscopeError as error:
        said[name] = str(error)
print(json.dumps(said))
"""

ASKED = {
    "plain": ("owner/tiny", None),
    "written": ("owner/tiny@step1000", None),
    "named": ("owner/tiny", "step1000"),
    "commit": ("owner/tiny@" + SHA["step1000"], None),
    "no revision": ("owner/tiny@step7", None),
    "no model": ("owner/other", None),
    "no id": ("/no/such/folder", None),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache as the hub's library leaves it: two revisions of one model."""
    home = tmp_path_factory.mktemp("hf")
    cache = home / "hub" / "models--owner--tiny"
    (cache / "refs").mkdir(parents=True)
    for seed, (name, sha) in enumerate(SHA.items()):
        tiny.save("bert", cache / "snapshots" / sha, seed=seed)
        (cache / "refs" / name).write_text(sha)
    return home


@pytest.fixture(scope="module")
def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "HF_HOME": str(home), "HF_HUB_CACHE": str(home / "hub"), "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="module")
def said(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    asked = json.dumps([[name, *rest] for name, rest in ASKED.items()])
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, asked],
        env=environment,
        cwd=tmp_path_factory.mktemp("empty"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("name", "branch"),
    [("plain", "main"), ("written", "step1000"), ("named", "step1000"), ("commit", "step1000")],
)
def test_the_cache_answers(said: dict[str, object], name: str, branch: str) -> None:
    seed = list(SHA).index(branch)
    assert said[name] == ["owner/tiny", SHA[branch], fingerprint(tiny.model("bert", seed)), 4]


def test_what_the_cache_does_not_have(said: dict[str, object]) -> None:
    for name, model in (("no revision", "owner/tiny"), ("no model", "owner/other")):
        assert str(said[name]).startswith(f"no model '{model}': there is no such folder here, and the hub")
    assert "it is no hub id (owner/name)" in str(said["no id"])


@pytest.mark.nightly
def test_the_command_takes_a_revision(environment: dict[str, str], tmp_path: Path) -> None:
    words = "measure owner/tiny --revision step1000 --limit 4 --max-length 32 --measures drift --out run"
    done = subprocess.run(
        [sys.executable, "-c", "from isoscope.cli.main import main; main()", *words.split()],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["question"]["revision"] == SHA["step1000"]
    assert run["question"]["model"] == "owner/tiny"
