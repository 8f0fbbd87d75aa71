"""`isoscope weights`: a model's weights, without running it; with data, what they do on it."""

from __future__ import annotations

from pathlib import Path

from isoscope.cli.options import AtLeast2, Limit, make_run, verb

HELP = {
    "query": "Names of the queries' weights, a regular expression with a group for the layer.",
    "key": "The same for the keys.",
    "length": "Positions that regimes and ρ(t) are told for.",
    "data": "Run the model over this as well: 'embedded', a file, a folder, id:split:column.",
}


@verb(HELP)
def weights(
    model: str, revision: str | None = None, config: str | None = None,
    query: str | None = None, key: str | None = None, length: AtLeast2 = 512,
    data: str | None = None, limit: Limit = 256, max_length: int | None = None, batch_size: int = 16,
    device: str | None = None, pack: bool = True, tokens: str = "auto", trust_remote_code: bool = False,
    seed: int = 0, out: Path | None = None, json: bool = False,
) -> object:  # fmt: skip
    """Measure a model's weights without running it: queries and keys, vocabularies, the final norm."""
    return make_run("isoscope.run.weigh.make:weights", locals())
