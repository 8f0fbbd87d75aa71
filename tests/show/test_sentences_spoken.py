"""No phrase is without a case: whatever a module of sentences can say, some table makes it say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import isoscope
from isoscope.kinds.advise.screen import advice
from tests.repair import test_advice
from tests.show import (
    test_anatomy,
    test_sentences,
    test_sentences_advice,
    test_sentences_attention,
    test_sentences_parts,
    test_sentences_runs,
    test_sentences_steps,
    test_sentences_weights,
)

SOURCE = Path(isoscope.__file__).parent
SAYING = ("families", "attention", "course", "weights", "words")
MODULES = (
    *(SOURCE / "show" / "say" / f"{name}.py" for name in SAYING),
    SOURCE / "kinds" / "advise" / "screen.py",
    *(SOURCE / "kinds" / f"{kind}.py" for kind in ("block", "contrast", "impact")),
    SOURCE / "kinds" / "sweep" / "sentences.py",
)
TABULAR = ("screen_of", "_table")  # what stands in tables, which the goldens of the terminal hold
SECTIONS = (
    "content_of",
    "contrast_sections",
    "trials_chart",
    "along_bias",
)  # headings, axes: goldens of pages
TABLES = (
    test_anatomy,
    test_sentences,
    test_sentences_advice,
    test_sentences_attention,
    test_sentences_parts,
    test_sentences_runs,
    test_sentences_steps,
    test_sentences_weights,
)
NAMES = {"series looked at for changes"}  # of what a run tells
LOOKING = ("not_finite", "cost", "told_once")  # of what looking found and took: test_training.py has those
ELSEWHERE = (*LOOKING, "against")  # two models over the same inputs: tests/run/test_paired.py
LETTERS = 9  # fewer are names of columns, joints and endings


def phrases(file: Path) -> Iterator[tuple[str, str]]:
    """The words of every string in the body of a function, and of every `Line`, with its name."""
    tree = ast.parse(file.read_text())
    lines = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Line"
    ]
    for part in (part for line in lines for part in ast.walk(line) if isinstance(part, ast.Constant)):
        for text in re.split(r"\{[^}]*\}", str(part.value)):
            if sum(map(str.isalpha, text)) >= LETTERS and " " in text.strip():
                yield "Line", text.strip()
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or function.name in (*TABULAR, *SECTIONS, *ELSEWHERE):
            continue
        first = function.body[0]
        told = {first.value} if isinstance(first, ast.Expr) else set()
        for part in ast.walk(function):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and part not in told:
                text = part.value.strip()
                if sum(map(str.isalpha, text)) >= LETTERS and " " in text and text not in NAMES:
                    yield function.name, text


@pytest.fixture(scope="module")
def spoken() -> str:
    """All that the cases say, in small letters: many a phrase begins a sentence or stands inside one."""
    texts = [case.there() for table in TABLES for case in table.CASES]
    texts += [one.text for _, there, _ in test_advice.CASES for one in advice(there)]
    return "\n".join(texts).lower()


@pytest.mark.parametrize("file", MODULES, ids=[f"{file.parent.name}-{file.stem}" for file in MODULES])
def test_every_phrase_is_said_in_some_case(file: Path, spoken: str) -> None:
    found = list(phrases(file))
    assert found
    assert [(name, text) for name, text in found if text.lower() not in spoken] == []


def test_a_phrase_that_nobody_says_is_found(tmp_path: Path, spoken: str) -> None:
    file = tmp_path / "words.py"
    file.write_text(
        'def f(x):\n    """Not this one at all."""\n    return f"Heads of {x} sing in the rain."\n'
    )
    assert list(phrases(file)) == [("f", "sing in the rain.")]
    assert not re.search("sing in the rain", spoken)
