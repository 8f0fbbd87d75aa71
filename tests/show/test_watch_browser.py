"""A watched page in a browser: a new step appears by itself, and what was chosen stays."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isoscope.results.store import open_run, read_run
from isoscope.show.page.page import page
from isoscope.show.watch.watch import Watch, served_library
from tests.show.browser import Opened
from tests.show.made_training import a_training, facts, watched
from tests.show.watching import serving

STEPS = [0, 1, 4, 25]


def write(run: Path, steps: list[int]) -> None:
    folder = open_run(run, a_training())
    for step in steps:
        unit = f"step {step:06d}"
        folder.write(unit, watched([step], layers=7, heads=32), facts([step])[unit])


def drawn(run: Path) -> str:
    folder = read_run(run)
    return page(folder.run, folder.frame(), folder.facts(), folder.points())


class Address(str):
    """Where a watched page is, as `Opened` asks for it."""

    def as_uri(self) -> str:
        return str(self)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def address(run: Path) -> Iterator[Address]:
    watch, stop = Watch(run, drawn), threading.Event()
    looking = threading.Thread(target=watch.keep_looking, args=(stop,))
    looking.start()
    with serving(watch) as server:
        yield Address(server.url)
        stop.set()
    looking.join()


def see(opened: Opened, step: int) -> None:
    """Wait until the page is as of this step, and drawn."""
    opened.page.locator(".headline", has_text=f"to step {step} ").wait_for(timeout=30_000)
    opened.page.locator("#watch [role=status]", has_text="as of").wait_for()
    opened.settle()


def test_a_new_step_appears_by_itself_and_nothing_complains(
    browser: Any, run: Path, address: Address
) -> None:
    opened = Opened(browser, address)  # type: ignore[arg-type]
    opened.page.locator("#watch [role=status]", has_text="the folder is not there").wait_for()
    assert opened.page.inner_text("h1") == str(run)
    write(run, STEPS)
    see(opened, 25)
    before = opened.drawn()
    assert before > 2
    write(run, [100])
    see(opened, 100)
    assert opened.drawn() == before
    assert "step 000100" in opened.page.locator("#provenance").text_content()
    assert opened.complaints == []
    asked = [url.removeprefix(address) for url in opened.asked]
    assert {*asked} - {"data:,"} == {"", "version", served_library().name}
    assert asked.count("") >= 3
    opened.context.close()


@pytest.mark.nightly
def test_what_was_chosen_stays_and_the_place_too(browser: Any, run: Path, address: Address) -> None:
    write(run, STEPS)
    opened = Opened(browser, address)  # type: ignore[arg-type]
    see(opened, 25)
    page = opened.page
    page.click("nav >> text=Attention")  # a place in the address as well
    page.wait_for_function("() => location.hash === '#attention'")
    page.select_option("#attention .groups select", label="5–7")
    page.get_by_role("button", name="value").click()
    page.get_by_role("button", name="value").click()
    unfolded = page.locator("#provenance details", has=page.locator("summary", has_text="step 000004"))
    unfolded.locator("summary").click()
    page.locator("#attention .groups select").evaluate("n => n.focus({preventScroll: true})")
    place = "Math.round(document.querySelector('#attention').getBoundingClientRect().top)"
    at_rest = f"new Promise((told) => setTimeout(() => told({place} === -333), 300))"
    to = "window.scrollTo({top: document.querySelector('#attention').offsetTop + 333, behavior: 'instant'})"
    page.wait_for_function(f"() => {{ {to}; return {at_rest}; }}")  # the link's own scrolling is over
    write(run, [100])
    see(opened, 100)
    page.wait_for_function(f"() => {at_rest}")
    assert (
        page.locator("#attention .groups select").evaluate("n => n.selectedOptions[0].textContent") == "5–7"
    )
    assert page.locator("#attention .group").evaluate_all("all => all.map((n) => n.hidden)") == [True, False]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("value")
    assert page.locator("#provenance details[open] summary").all_inner_texts() == ["step 000004"]
    assert page.evaluate("document.activeElement.id") == "attention-layers"
    assert page.evaluate("location.hash") == "#attention"
    assert opened.complaints == []
    opened.context.close()


@pytest.mark.nightly
def test_who_does_not_follow_is_told_and_left_alone(browser: Any, run: Path, address: Address) -> None:
    write(run, STEPS)
    opened = Opened(browser, address)  # type: ignore[arg-type]
    see(opened, 25)
    follow = opened.page.get_by_label("follow")
    follow.uncheck()
    write(run, [100])
    opened.page.locator("#watch [role=status]", has_text="newer rows are there, as of").wait_for(
        timeout=30_000
    )
    assert "to step 25 " in opened.page.inner_text(".headline")
    follow.check()
    see(opened, 100)
    assert opened.complaints == []
    opened.context.close()


def test_a_script_that_is_not_ours_is_refused_and_no_other_server_is_asked(
    browser: Any, run: Path, address: Address
) -> None:
    write(run, STEPS)
    opened = Opened(browser, address)  # type: ignore[arg-type]
    see(opened, 25)
    opened.page.evaluate(
        "() => document.body.append(Object.assign(document.createElement('script'), {text: 'bad = 1'}))"
    )
    assert opened.page.evaluate("window.bad") is None
    asked = "fetch('http://127.0.0.2:9/').then(() => 'answered', (error) => error.name)"
    assert opened.page.evaluate(asked) == "TypeError"
    assert len([one for one in opened.complaints if "Content Security Policy" in one]) >= 2
    opened.context.close()
