"""Which tokens of a text model make vectors alike: rare or frequent ones, special ones, the first.

Read where the model's vectors are taken, before they are pooled.
"""

from __future__ import annotations

from dataclasses import replace

from isoscope.models.inputs import open_data
from isoscope.models.source import Model
from isoscope.results.row import Row
from isoscope.run.observe.observe import Progress, observe
from isoscope.sites import Site

TOKENS, ALL_TOKENS = "tokens", "all tokens"
SEQUENCES = 512
BANDS = ("mean_cosine_rare", "mean_cosine_middle", "mean_cosine_frequent", "frequency_correlation")
CLAIM = "mean_cosine_between"


def token_rows(
    model: Model, address: str, site: Site,
    *, limit: int | None, max_length: int | None, batch_size: int, pack: bool, run: str = "",
    progress: Progress | None = None
) -> list[Row]:  # fmt: skip
    """Rows of the vectors of tokens at a site, on at most `SEQUENCES` sequences; none of other models."""
    if model.takes != "text":
        return []
    found: list[Row] = []
    for name, measures in ((TOKENS, [CLAIM, *BANDS]), (ALL_TOKENS, [CLAIM])):
        every = name == ALL_TOKENS
        data = open_data(
            address, model, limit=min(limit or SEQUENCES, SEQUENCES), max_length=max_length,
            batch_size=batch_size, pack=pack, special=every, first=every
        )  # fmt: skip
        seen = observe(
            model, data, measures=measures, layers=str(site), counterfactual=False, progress=progress
        )
        found += [replace(row, model=name, run=run) for row in seen.rows()]
    return found
