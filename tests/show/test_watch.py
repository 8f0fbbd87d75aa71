"""A watched run: new rows are shown, and what is broken leaves the page before."""

from __future__ import annotations

import html
import os
import re
import shutil
import threading
import time
from pathlib import Path

import pytest

from isoscope.results.store import open_run, read_run
from isoscope.show.draw.plotly.charts import carried
from isoscope.show.page.page import page
from isoscope.show.watch.watch import Watch, newest_file, served_library, state, watched_page
from tests.show.made_training import a_training, facts, watched
from tests.show.watching import get, serving, small_page, until, version, write_step


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with two looks."""
    folder = tmp_path / "runs" / "mine"
    for step in (0, 1):
        write_step(folder, step)
    return folder


def test_only_whole_files_of_rows_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / ".one.parquet.123").write_bytes(b"half")
    assert state(tmp_path) == ()
    assert newest_file(tmp_path / "rows") is None


def test_a_step_that_lands_is_on_the_page_and_changes_the_version(run: Path) -> None:
    watch = Watch(run, small_page)
    assert watch.look()
    assert not watch.look()  # nothing has changed
    with serving(watch) as server:
        before = version(server.url)
        assert "steps: [0, 1]" in get(server).text
        assert f'data-version="{before["version"]}"' in get(server).text
        file = write_step(run, 25)
        newest = max(file.stat().st_mtime, 0)
        assert watch.look()
        after = version(server.url)
        assert after["version"] != before["version"]
        assert after["said"] == f"as of {time.strftime('%H:%M:%S', time.localtime(newest))}"
        assert "steps: [0, 1, 25]" in get(server).text


def test_what_has_come_is_told_before_it_is_drawn(run: Path, tmp_path: Path) -> None:
    watch = Watch(run, small_page)
    watch.look()
    good = watch.ask()
    file = write_step(run, 25)
    assert (
        watch.ask().said == f"{good.said}; step 25 has come: loss 0.1923, mean cosine up to 0.4; drawing it"
    )
    assert watch.ask().page is good.page
    whole = file.read_bytes()
    file.write_bytes(whole[:99])  # nothing is told of half a file, until it is drawn
    assert watch.ask().said == good.said
    file.unlink()
    outside = write_step(tmp_path / "outside", 777)
    file.symlink_to(outside)
    os.utime(outside)
    assert watch.ask().said == good.said
    file.unlink()
    file.write_bytes(whole)
    assert watch.look()
    assert "has come" not in watch.ask().said


def test_what_is_no_step_is_told_by_its_name(run: Path) -> None:
    watch = Watch(run, small_page)
    watch.look()
    open_run(run, a_training()).write("a trial", watched([]), {})
    assert watch.ask().said.endswith("; a trial has come; drawing it")


def test_a_page_that_did_not_change_keeps_its_version(run: Path) -> None:
    watch = Watch(run, lambda _: small_page(run))
    assert watch.look()
    before = watch.ask().page.version
    os.utime(next((run / "rows").iterdir()))
    assert watch.look()
    assert watch.ask().page.version == before


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_half_a_file_leaves_the_page_before_and_says_as_of_when(run: Path, share: float) -> None:
    watch = Watch(run, small_page)
    watch.look()
    good = watch.ask()
    file = write_step(run, 25)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(share * len(whole))])
    assert not watch.look()
    told = watch.ask()
    assert told.page is good.page
    assert told.said.startswith(f"{good.said}; newer rows cannot be shown: cannot read rows/{file.name}: ")
    assert str(run) not in told.said
    file.write_bytes(whole)
    assert watch.look()
    assert b"steps: [0, 1, 25]" in watch.ask().page.body
    assert watch.trouble == ""


def test_what_failed_is_tried_again_though_no_file_changed(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    def at_second_try(path: Path) -> str:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ZeroDivisionError("by 0")
        return small_page(path)

    watch = Watch(run, at_second_try)
    assert not watch.look()
    assert watch.trouble == "newer rows cannot be shown: ZeroDivisionError: by 0"
    assert not watch.look() and tries == 1
    now = time.monotonic()
    monkeypatch.setattr("isoscope.show.watch.watch.time.monotonic", lambda: now + 6)
    assert watch.look() and tries == 2


def test_a_run_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    run = tmp_path / "a <b> & c"
    watch = Watch(run, small_page)
    with serving(watch) as server:
        assert not watch.look()
        waiting = get(server)
        assert waiting.status == 200
        assert f"<h1>{html.escape(str(run))}</h1>" in waiting.text
        assert version(server.url)["said"] == f"waiting for {run}: the folder is not there"
        (run / "rows").mkdir(parents=True)
        assert not watch.look()
        assert watch.trouble.endswith("it has no run.json")
        (run / "rows").rmdir()
        run.rmdir()
        write_step(run, 3).unlink()
        assert not watch.look()
        assert watch.trouble.endswith("it has no rows")
        (run / "run.json").write_text('{"kind": ')
        write_step_beside(run)
        assert not watch.look()
        assert "cannot read run.json" in watch.trouble
        shutil.rmtree(run)
        write_step(run, 4)
        assert watch.look()
        assert "steps: [4]" in get(server).text


def write_step_beside(run: Path) -> None:
    """A file of rows in a folder whose run.json is not whole."""
    other = run.parent / "other"
    shutil.copy(write_step(other, 1), run / "rows")


def test_a_folder_that_goes_and_comes_back(run: Path) -> None:
    watch = Watch(run, small_page)
    watch.look()
    good = watch.ask()
    run.rename(run.parent / "away")
    assert not watch.look()
    told = watch.ask()
    assert told.page is good.page
    assert told.said == f"{good.said}; waiting for {run}: the folder is not there"
    (run.parent / "away").rename(run)
    assert watch.look()
    assert watch.ask().said == good.said


@pytest.mark.parametrize("what", ["rows file", "points file", "rows", "run.json"])
def test_links_out_of_the_folder_are_not_read(run: Path, tmp_path: Path, what: str) -> None:
    watch = Watch(run, small_page)
    watch.look()
    good = watch.ask()
    outside = tmp_path / "outside"
    hidden = write_step(outside, 777)
    (run / "points").mkdir(exist_ok=True)
    place, target = {
        "rows file": (run / "rows" / hidden.name, hidden),
        "points file": (run / "points" / hidden.name, hidden),
        "rows": (run / "rows", outside / "rows"),
        "run.json": (run / "run.json", outside / "run.json"),
    }[what]
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(target)
    os.utime(target)
    assert not watch.look()
    assert "is a link that leads out of the run folder" in watch.trouble
    assert watch.ask().page is good.page
    assert str(tmp_path) not in watch.trouble


def test_links_within_the_folder_and_to_it_are_fine(run: Path) -> None:
    latest = run.parent / "latest"
    latest.symlink_to(run)
    file = write_step(run, 9)
    (run / "kept").mkdir()
    file.rename(run / "kept" / file.name)
    file.symlink_to(run / "kept" / file.name)
    watch = Watch(latest, small_page)
    assert watch.look(), watch.trouble
    assert b"steps: [0, 1, 9]" in watch.ask().page.body


def test_the_served_page_may_ask_its_server_and_the_page_on_disk_nobody() -> None:
    steps = [0, 1, 25]
    text = page(a_training("</body> <b>"), watched(steps), facts(steps))
    made = watched_page(text)
    served_text = made.body.decode()
    own = html.unescape(re.search(r'Policy" content="([^"]*)"', text)[1])  # type: ignore[index]
    now = html.unescape(re.search(r'Policy" content="([^"]*)"', served_text)[1])  # type: ignore[index]
    assert "connect-src" not in own
    assert made.policy == f"{now}; frame-ancestors 'none'"
    assert now.endswith("; connect-src 'self'")
    added = set(re.findall(r"'sha256-[^']*'", now)) - set(re.findall(r"'sha256-[^']*'", own))
    assert len(added) == 1
    assert now.replace(f"'self' {added.pop()} ", "").removesuffix("; connect-src 'self'") == own
    assert len(made.body) < 0.2 * len(text)  # what draws is a script of its own, which is sent once
    assert served_text.count(f'<script src="{served_library().name}"></script>') == 1
    assert carried() in text and carried() not in served_text
    assert "asks nothing of the network" in text and "asks nothing of the network" not in served_text
    assert served_text.count('<aside id="watch"') == 1
    assert watched_page(text).version == made.version != watched_page(text + " ").version


def test_what_is_no_page_of_ours_is_not_served() -> None:
    with pytest.raises(ValueError, match="no policy"):
        watched_page("<body></body>")


def test_one_page_is_drawn_at_a_time_and_the_one_before_served_meanwhile(run: Path) -> None:
    begun, go_on, at_once, most = threading.Event(), threading.Event(), 0, 0

    def slow(path: Path) -> str:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        if len(list((path / "rows").iterdir())) > 2:
            begun.set()
            assert go_on.wait(20)
        at_once -= 1
        return small_page(path)

    watch, stop = Watch(run, slow), threading.Event()
    looking = threading.Thread(target=watch.keep_looking, args=(stop,))
    looking.start()
    try:
        with serving(watch) as server:
            until(lambda: "steps: [0, 1]" in get(server).text)
            write_step(run, 25)
            assert begun.wait(20)
            write_step(run, 26)
            for _ in range(5):
                assert "steps: [0, 1]" in get(server).text
            assert "; step 26 has come: " in version(server.url)["said"]
            go_on.set()
            until(lambda: "steps: [0, 1, 25, 26]" in get(server).text)
        assert most == 1
    finally:
        go_on.set()
        stop.set()
        looking.join(20)
    assert not looking.is_alive()


def test_nothing_is_drawn_while_nobody_asks(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isoscope.show.watch.watch._OF_LATE", 0.0)
    drawn = []

    def counted(path: Path) -> str:
        drawn.append(len(read_run(path).units()))
        return small_page(path)

    watch, stop = Watch(run, counted), threading.Event()
    looking = threading.Thread(target=watch.keep_looking, args=(stop,))
    looking.start()
    try:
        until(lambda: drawn == [2])
        write_step(run, 25)
        time.sleep(1.2)
        assert drawn == [2]
        monkeypatch.setattr("isoscope.show.watch.watch._OF_LATE", 60.0)
        watch.ask()
        until(lambda: drawn == [2, 3])
    finally:
        stop.set()
        looking.join(20)


def test_a_folder_that_may_not_be_read_is_said_and_survived(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(run, small_page)
    watch.look()
    good = watch.ask()

    def refused(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("isoscope.show.watch.watch.state", refused)
        assert not watch.look()
        assert "Permission denied" in watch.trouble
        assert watch.ask().page is good.page
    write_step(run, 30)
    assert watch.look()
