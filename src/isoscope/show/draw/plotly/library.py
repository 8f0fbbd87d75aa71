"""Plotly's script, and how a page carries it: compressed, 1.9 MB of letters in place of 4.8."""

from __future__ import annotations

import base64
import gzip
from functools import cache


@cache
def library() -> str:
    """The script."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


@cache
def carried() -> str:
    """The script as a page carries it: gzip in base64, the same letters each time."""
    return base64.b64encode(gzip.compress(library().encode(), 9, mtime=0)).decode()
