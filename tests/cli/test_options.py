"""How texts of options are read."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature

import pytest

from isoscope.cli.advise import advise
from isoscope.cli.compare import compare
from isoscope.cli.impact import impact
from isoscope.cli.measure import measure
from isoscope.cli.options import parse_share, verb
from isoscope.cli.sweep import sweep
from isoscope.cli.weights import weights
from isoscope.errors import IsoscopeError
from isoscope.kinds.table import named


def test_a_share_is_read() -> None:
    assert parse_share("0/1", "--only") == (0, 1)
    assert parse_share("3/4", "--only") == (3, 4)
    for wrong in ("", "1", "1/1", "3/2", "-1/2", "a/b", "1/2/3", "0/0"):
        with pytest.raises(IsoscopeError, match=f"--shard is i/n.*got '{wrong}'"):
            parse_share(wrong, "--shard")


@pytest.mark.parametrize(
    ("function", "call", "others"),
    [
        (measure, "isoscope.run.measure:measure", set()),
        (weights, "isoscope.run.weigh.make:weights", set()),
        (compare, "isoscope.run.compare:compare", set()),
        (advise, "isoscope.kinds.advise.make:advise", set()),
        (impact, "isoscope.repair.impact.run:impact", set()),
        (sweep, "isoscope.kinds.sweep.make:sweep", {"pythia_schedule", "all_revisions"}),
    ],
)
def test_the_options_of_a_verb_are_those_of_its_call(
    function: Callable[..., None], call: str, others: set[str]
) -> None:
    options = set(signature(function).parameters) - {"json"} - others
    assert options == set(signature(named(call)).parameters) - {"telling", "watching"}


def test_every_option_has_a_help() -> None:
    def wrong(what: int = 0) -> None: ...

    with pytest.raises(KeyError, match="what"):
        verb({})(wrong)
