"""The papers by name. To add one: a package with its claims and a `PAPER`, and a line here."""

from __future__ import annotations

from isoscope.errors import chosen
from isoscope.papers import bao2024, godey2024, machina2024
from isoscope.papers.paper import Paper

PAPERS = (godey2024.PAPER, machina2024.PAPER, bao2024.PAPER)


def paper_of(name: str) -> Paper:
    """The paper of a name."""
    return chosen("paper", name, PAPERS)
