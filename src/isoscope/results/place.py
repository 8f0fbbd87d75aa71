"""Where a run goes where no folder is named."""

from __future__ import annotations

import re
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

Several = str | PathLike[str] | Iterable[str | PathLike[str]]
"""One name or path, or several."""


def default_out(name: str, run_id: str) -> Path:
    """One folder per question, below `runs`.

    >>> str(default_out("advise my/model", "0123456789ab"))
    'runs/advise-my-model-012345'
    """
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[-40:] or "run"
    return Path("runs") / f"{plain}-{run_id[:6]}"


def several(what: Several) -> list[str]:
    """Names or paths as a list; one alone is a list of one.

    >>> several("gpt2"), several(("gpt2", Path("runs/a")))
    (['gpt2'], ['gpt2', 'runs/a'])
    """
    return [str(one) for one in ([what] if isinstance(what, str | PathLike) else what)]
