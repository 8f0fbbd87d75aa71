"""The tasks by name. To add one: write a function (data, length) → Lesson, and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from isoscope.lab.tasks.base import Lesson
from isoscope.lab.tasks.frames import frames
from isoscope.lab.tasks.images import images
from isoscope.lab.tasks.text import characters, masked, subwords, words


@dataclass(frozen=True)
class Task:
    """A task: what gives its lesson from an address and a length, and what is learnt."""

    name: str
    open: Callable[[str, int], Lesson]
    formula: str
    says: str


TASKS = (
    Task("characters", characters, "−log p(next character)", "language modelling by character"),
    Task("words", words, "−log p(next word)", "language modelling by word, every word known"),
    Task("subwords", subwords, "−log p(next sub-word)", "language modelling by byte-pair encoding"),
    Task("masked", masked, "−log p(sub-word behind a mask)", "masked language modelling"),
    Task("images", images, "−log p(class)", "classification of pictures, from their patches"),
    Task("frames", frames, "‖next frame − predicted‖²/c", "prediction of the next frame of sound"),
)
