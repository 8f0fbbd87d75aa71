"""What every page is put together from: assets, templates, JSON inside a script, and the security policy."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files

import jinja2
from markupsafe import Markup


@cache
def asset(name: str) -> str:
    """The text of a file in `show/page/assets`."""
    return files("isoscope.show.page").joinpath("assets", name).read_text(encoding="utf-8")


def embedded_json(value: object) -> Markup:
    """JSON that is harmless inside a script element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def content_policy(*scripts: str) -> str:
    """The content-security policy of a page that runs these scripts and nothing else."""
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def templates() -> jinja2.Environment:
    """The environment of templates: it escapes what is put into them, and a missing value is an error."""

    def unbroken(value: object) -> object:
        """Keep a number and its % on one line."""
        return value.replace(" %", "\u00a0%") if type(value) is str else value

    return jinja2.Environment(
        finalize=unbroken,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(asset),
    )
