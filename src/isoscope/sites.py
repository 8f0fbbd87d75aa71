"""Where in a model something was seen: a kind and, where it has one, a layer.

Written ``layer.3`` or ``output``; chosen by glob. Selecting nothing is an error, never an empty table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from isoscope.errors import IsoscopeError

ATTENTION = ("attention", "cross_attention", "mixed_attention")
CENTRED, WITHOUT_TOP = "centred", "without_top"
FORMS = ("", CENTRED, WITHOUT_TOP)
"""In which a vocabulary is read: as it is, without its mean, and without its top directions as well."""

_WITH_FORMS = ("input_vocabulary", "output_vocabulary", "tied_vocabulary", "norm")


def of_form(base: str, form: str) -> str:
    """The kind of a site that shows another in a form: a vocabulary centred, a stage or an edit of the norm.

    >>> of_form("input_vocabulary", CENTRED), of_form("norm", "without bias"), of_form("norm", "")
    ('input_vocabulary_centred', 'norm_without_bias', 'norm')
    """
    return "_".join([base, *form.split()])


def parts(kind: str) -> tuple[str, str]:
    """The site that a kind shows, and in which form; no other code takes a kind apart.

    >>> parts("input_vocabulary_without_top"), parts("norm"), parts("layer")
    (('input_vocabulary', 'without_top'), ('norm', ''), ('layer', ''))
    """
    base = next((base for base in _WITH_FORMS if kind.startswith(f"{base}_")), kind)
    return base, kind[len(base) + 1 :]


@dataclass(frozen=True)
class Site:
    """A place: ``Site("layer", 3)`` is what leaves block 3, ``Site("layer", 0)`` what enters block 1."""

    kind: str
    layer: int | None = None

    def __str__(self) -> str:
        return self.kind if self.layer is None else f"{self.kind}.{self.layer}"


def select(sites: Iterable[Site], patterns: str) -> tuple[Site, ...]:
    """Keep the sites that match one of the comma-separated globs; a bare number means that layer.

    >>> [str(site) for site in select([Site("layer", 0), Site("layer", 1), Site("output")], "0,out*")]
    ['layer.0', 'output']
    """
    there = tuple(sites)
    globs = [f"layer.{part}" if part.isdigit() else part for part in patterns.replace(" ", "").split(",")]
    chosen = tuple(site for site in there if any(fnmatchcase(str(site), glob) for glob in globs))
    if not chosen:
        raise IsoscopeError(f"'{patterns}' selects no site; there are: {', '.join(map(str, there))}.")
    return chosen
