"""What every page is put together from: assets, templates, JSON inside a script, and the security policy.

No name can end a script, since `<`, `>` and `&` are written as escapes in JSON, and the policy allows
scripts by their SHA-256 alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

import jinja2
from markupsafe import Markup, escape

from isoscope.results.run import Run
from isoscope.show.colours import GRID, INK, PAPER, SOFT, Pair
from isoscope.show.draw.plotly.charts import carried, figure, library
from isoscope.show.packed import written
from isoscope.show.page.tables import NUMBERS, facts_table

_SCRIPTS = ("page.js", "table.js", "picker.js", "clouds.js", "weights.js", "sweep.js")


def rendered(
    template: str, run: Run, facts: Mapping[str, Mapping[str, object]], colours: Iterable[Pair],
    values: Mapping[str, object], without: tuple[str, ...] = ("notes", "budget note"),
) -> str:  # fmt: skip
    """A template with `values` and with what every page carries: provenance, style, scripts and policy.

    `colours` are those of its figures; `without` are facts that the page shows elsewhere.
    """
    script = "".join(map(asset, _SCRIPTS))
    return templates().get_template(template).render(
        values, run=run, right=NUMBERS,
        question=facts_table(run.question), versions=facts_table(run.versions),
        facts=[(unit, lines) for unit, known in facts.items() if (lines := facts_table(known, without))],
        css=Markup(asset("page.css")), library=Markup(carried()), script=Markup(script),
        policy=content_policy(library(), script),
        dark=embedded_json(dict([INK, SOFT, GRID, PAPER, *colours])), embedded_json=embedded_json,
        figure_json=lambda panel: embedded_json(written(figure(panel.chart))),
    )  # fmt: skip


@cache
def asset(name: str) -> str:
    """The text of a file in `show/page/assets`."""
    return files("isoscope.show.page").joinpath("assets", name).read_text(encoding="utf-8")


def embedded_json(value: object) -> Markup:
    """JSON that is harmless inside a script element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def script_digest(script: str) -> str:
    """A script as a content-security policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def content_policy(*scripts: str) -> str:
    """The content-security policy of a page that runs these scripts and nothing else."""
    return (
        f"default-src 'none'; script-src {' '.join(map(script_digest, scripts))}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def coded(text: str) -> Markup:
    """Escaped, with what stands between backticks set as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


@cache
def templates() -> jinja2.Environment:
    """The environment of templates: it escapes what is put into them, and a missing value is an error."""
    made = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=jinja2.FunctionLoader(asset),
        finalize=lambda value: value.replace(" %", "\u00a0%") if type(value) is str else value,  # on one line
    )  # fmt: skip
    made.filters["coded"] = coded
    return made
