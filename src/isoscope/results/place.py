"""Where a run goes where no folder is named."""

from __future__ import annotations

import re
from pathlib import Path


def default_out(name: str, run_id: str) -> Path:
    """One folder per question, below `runs`.

    >>> str(default_out("advise my/model", "0123456789ab"))
    'runs/advise-my-model-012345'
    """
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[-40:] or "run"
    return Path("runs") / f"{plain}-{run_id[:6]}"
