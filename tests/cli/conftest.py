"""One verb of the command line, called in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import typer

Call = Callable[..., tuple[str, str]]


@pytest.fixture
def call(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call the test module's `VERB` with these words; gives what it wrote, and raises its errors."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(request.module.VERB)

    def run(*words: object) -> tuple[str, str]:
        capsys.readouterr()
        app([str(word) for word in words], standalone_mode=False)
        return capsys.readouterr()

    return run
