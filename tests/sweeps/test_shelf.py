"""The shelf, in a process of its own with a hub on loopback: the budget holds, whatever happens."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sweeps.fake_hub import commit_of
from tests.sweeps.pointed import Pointed, Running, pointed
from tests.sweeps.trajectory import walk
from tests.tiers import nightly

STEPS = [0, 1, 2, 4, 8, 16]
START = """
import json, sys, threading, time
from pathlib import Path
from isoscope.errors import IsoscopeError
from isoscope.sweeps.find.remote import listing, revisions
from isoscope.sweeps.fetch.shelf import Shelf, room_of
folder, many = Path(sys.argv[1]), float(sys.argv[2])
plan = revisions("owner/tiny")
budget = int(many * max(room_of(listing(each)) for each in plan)) + 2 * 4096
print("budget", budget, flush=True)
"""


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pointed]:
    """A hub with six checkpoints, of which each has more than is needed."""
    paths = walk(tmp_path_factory.mktemp("walk"), STEPS, width=64)
    for path in paths:
        (path / "pytorch_model.bin").write_bytes(b"0" * 1_000_000)
        (path / "optimizer.pt").write_bytes(b"0" * 1_000_000)
    with pointed(tmp_path_factory.mktemp("hub")) as found:
        found.hub.models["owner/tiny"] = {path.name: path for path in paths}
        yield found


@pytest.fixture(autouse=True)
def fast(there: Pointed) -> None:
    there.hub.seconds, there.hub.piece, there.hub.failing = 0.0, 65_536, {}


def process(there: Pointed, folder: Path, many: float, code: str) -> Running:
    """A process with a shelf in `folder`, of room for so many checkpoints."""
    return there.run(folder.parent / "said", START + code, folder, many)


def on_disk(folder: Path) -> int:
    """The bytes that a folder takes, in blocks of the disk or of its files, whichever is more."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                found = (Path(place) / name).stat()
            except OSError:
                continue
            total += max(found.st_size, 512 * found.st_blocks)
    return total


def most_of_one(there: Pointed) -> int:
    """What the weights of a checkpoint take, without the small files."""
    return min(
        (path / "model.safetensors").stat().st_size for path in there.hub.models["owner/tiny"].values()
    )


def watched(running: Running, folder: Path) -> tuple[list[str], int]:
    """What a process printed, and the most that its shelf took at any time."""
    sizes = [0]
    lines = running.wait(lambda: sizes.append(on_disk(folder)))
    return lines, max(sizes)


@pytest.mark.parametrize(("many", "workers"), [(2.2, 2), *nightly((1.0, 1), (3.0, 2))])
def test_the_budget_holds_at_any_time(there: Pointed, tmp_path: Path, many: float, workers: int) -> None:
    """Six checkpoints through room for few, by several threads; only what is needed is fetched."""
    code = f"""
left, said = list(plan), threading.Lock()
def measure():
    while True:
        with said:
            if not left:
                return
            each = left.pop(0)
        path = shelf.fetch(each)
        files = sorted(file.name for file in path.iterdir())
        before = (path / "model.safetensors").read_bytes()
        until = time.monotonic() + 5
        time.sleep(0.25)  # time enough for the next to be fetched, if there were room
        while left and len(list(folder.glob("*/.whole.json"))) < int(many) and time.monotonic() < until:
            time.sleep(0.01)
        assert (path / "model.safetensors").read_bytes() == before
        with said:
            print(json.dumps([each.name, files]), flush=True)
        shelf.done(each)
        assert not path.exists()
with Shelf(folder, budget, plan, ahead={workers}) as shelf:
    threads = [threading.Thread(target=measure) for _ in range({workers})]
    [each.start() for each in threads]
    [each.join() for each in threads]
"""
    before = len(there.hub.files())
    lines, most = watched(process(there, tmp_path / "shelf", many, code), tmp_path / "shelf")
    budget = int(lines[0].split()[1])
    told = [json.loads(line) for line in lines[1:]]
    total = sum(on_disk(path) for path in there.hub.models["owner/tiny"].values())
    one = most_of_one(there)
    assert int(many) * one <= most <= budget < total  # as many as fit lay there together
    assert {name for name, _ in told} == {f"step{step}" for step in STEPS}
    needed = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    assert all(files == [".whole.json", *needed] for _, files in told)
    assert len(there.hub.files()) - before == 4 * len(STEPS)  # each once, and neither .bin nor the optimiser
    assert not (tmp_path / "shelf").exists()


def test_the_next_one_is_there_before_it_is_asked_for(there: Pointed, tmp_path: Path) -> None:
    code = """
with Shelf(folder, budget, plan, ahead=1) as shelf:
    for number, each in enumerate(plan):
        path = shelf.fetch(each)
        waited = time.monotonic()
        while number + 1 < len(plan) and time.monotonic() < waited + 20:
            whole = {file.parent.name for file in folder.glob("*/.whole.json")}
            if len(whole) == 2:
                break
            time.sleep(0.002)
        print(number, len(whole), flush=True)
        shelf.done(each)
"""
    there.hub.seconds = 0.0
    lines, _ = watched(process(there, tmp_path / "shelf", 4, code), tmp_path / "shelf")
    assert lines[1:-1] == [f"{number} 2" for number in range(len(STEPS) - 1)]


def test_what_was_fetched_ahead_gives_way_and_what_is_in_use_does_not(there: Pointed, tmp_path: Path) -> None:
    code = """
with Shelf(folder, budget, plan, ahead=2) as shelf:
    first = shelf.fetch(plan[0])
    while len(list(folder.glob("*/.whole.json"))) < 2:
        time.sleep(0.002)
    last = shelf.fetch(plan[-1])  # there is room for two: the one ahead goes
    print(first.exists(), last.exists(), len(list(folder.glob("*/.whole.json"))))
    found = []
    waiting = threading.Thread(target=lambda: found.append(shelf.fetch(plan[1])))
    waiting.start()
    time.sleep(0.3)
    print(bool(found), first.exists(), last.exists())
    shelf.done(plan[0])
    waiting.join(20)
    print(found[0].exists(), first.exists(), shelf.fetch(plan[-1]) == last)
"""
    lines, _ = watched(process(there, tmp_path / "shelf", 2, code), tmp_path / "shelf")
    assert lines[1:] == ["True True 2", "False True True", "True False True"]


def test_what_cannot_be_had_is_one_sentence_for_the_one_who_asks(there: Pointed, tmp_path: Path) -> None:
    code = """
from dataclasses import replace
small = Shelf(folder, 9 * 4096, plan)
with small:
    for each in (plan[0], replace(plan[0], revision="step3"), replace(plan[0], address="owner/none")):
        try:
            small.fetch(each)
        except IsoscopeError as reason:
            print(reason)
try:
    small.fetch(plan[0])
except IsoscopeError as reason:
    print("closed" in str(reason))
with Shelf(folder, budget, plan) as one:
    try:
        Shelf(folder, budget, plan)
    except IsoscopeError as reason:
        print(str(reason).replace(str(folder), "F"))
other = folder.parent / "mine"
other.mkdir()
(other / "thesis.txt").write_text("do not remove")
try:
    Shelf(other, budget, plan)
except IsoscopeError as reason:
    print(str(reason).replace(str(other), "F"), (other / "thesis.txt").exists())
"""
    lines, _ = watched(process(there, tmp_path / "shelf", 1, code), tmp_path / "shelf")
    assert lines[1].startswith("'step0' takes ") and lines[1].endswith("; give a larger --disk-budget.")
    assert lines[2:] == [
        "the model 'owner/tiny' has no revision 'step3' on the hub.",
        "no model 'owner/none': there is no such folder here, and the hub has none of that name.",
        "True",
        "another sweep keeps its checkpoints in F; wait for it, or name another folder.",
        "cannot keep checkpoints in F: it holds other files; name another folder. True",
    ]


def test_a_hub_that_fails_once_is_asked_again(there: Pointed, tmp_path: Path) -> None:
    """What went wrong ahead of time is not held against the one who asks later."""
    code = """
with Shelf(folder, budget, plan, ahead=1) as shelf:
    shelf.fetch(plan[0])
    print("there", flush=True)
    time.sleep(1.0)
    try:
        print(shelf.fetch(plan[1]).exists())
    except IsoscopeError as reason:
        print(reason)
"""
    second = commit_of(there.hub.models["owner/tiny"]["step1"])
    there.hub.failing = {f"resolve/{second}/model.safetensors": 403}
    running = process(there, tmp_path / "shelf", 3, code)
    running.wait_for("there")
    time.sleep(0.5)
    assert any(path.endswith(f"{second}/model.safetensors") for _, path in there.hub.asked)
    there.hub.failing = {}
    assert running.wait()[-1] == "True"


@pytest.mark.parametrize("after", [0.4, *nightly(0.15, 0.8)])
def test_killed_and_taken_up(there: Pointed, tmp_path: Path, after: float) -> None:
    """Whole ones are used as they are, half ones are cleared, and the budget holds in the next run, too."""
    there.hub.seconds, there.hub.piece = 0.03, 16_384
    shelf = tmp_path / "shelf"
    hold = """
with Shelf(folder, budget, plan, ahead=3) as shelf:
    shelf.fetch(plan[0])
    time.sleep(60)
"""
    running = process(there, shelf, 4, hold)
    running.wait_for("budget")
    time.sleep(after)
    running.kill()
    whole = {file.parent.name for file in shelf.glob("*/.whole.json")}
    there.hub.seconds = 0.0
    asked = len(there.hub.files())
    rerun = """
with Shelf(folder, budget, plan, ahead=1) as shelf:
    print(json.dumps(sorted(file.parent.name for file in folder.glob("*/.whole.json"))), flush=True)
    for each in plan:
        shelf.fetch(each)
        shelf.done(each)
"""
    lines, most = watched(process(there, shelf, 4, rerun), shelf)
    assert whole <= set(json.loads(lines[1]))
    assert most <= int(lines[0].split()[1])
    assert len(there.hub.files()) - asked == 4 * (len(STEPS) - len(whole))
    assert not shelf.exists()


def test_closing_ends_a_download_and_clears_it(there: Pointed, tmp_path: Path) -> None:
    """40 MB at 10 MB/s: the library looks up every 10 MB."""
    large = tmp_path / "large"
    large.mkdir()
    (large / "config.json").write_text("{}")
    (large / "model.safetensors").write_bytes(bytes(40_000_000))
    there.hub.models["owner/large"] = {"main": large}
    there.hub.seconds, there.hub.piece = 0.1, 1_000_000
    code = """
plan = revisions("owner/large")
started = time.monotonic()
with Shelf(folder, 10**8, plan, ahead=1) as shelf:
    def fetch():
        try:
            shelf.fetch(plan[0])
        except IsoscopeError as reason:
            print("closed" in str(reason), flush=True)
    waiting = threading.Thread(target=fetch)
    waiting.start()
    while not list(folder.glob("*/*")):
        time.sleep(0.01)
waiting.join(1)
print(time.monotonic() - started < 3.5, folder.exists())
"""
    lines, _ = watched(process(there, tmp_path / "shelf", 1, code), tmp_path / "shelf")
    assert lines[1:] == ["True", "True False"]
