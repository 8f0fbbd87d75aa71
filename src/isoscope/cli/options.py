"""Options that several verbs share, and how their texts are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from isoscope.errors import IsoscopeError

ModelOrWeights = Annotated[
    str,
    typer.Argument(
        help="A hub id or a name of the zoo (@revision may follow), a folder, or a file of weights."
    ),
]
ModelOrVectors = Annotated[
    str,
    typer.Argument(
        help="A hub id or a name of the zoo (@revision may follow), a folder, or a file of vectors "
        "(.npy, .npz, .parquet, .safetensors or .csv)."
    ),
]
Limit = Annotated[
    int, typer.Option(help="Maximum number of sequences, or of lines or vectors of a file (0 = all).")
]
MaxLength = Annotated[
    int | None,
    typer.Option(help="Maximum tokens per sequence. [default: the model's limit, at most 512]"),
]
BatchSize = Annotated[int, typer.Option(help="Sequences per batch.")]
Device = Annotated[
    str | None, typer.Option(help="cpu, cuda, cuda:1 or mps. [default: the GPU if there is one]")
]
Dtype = Annotated[str, typer.Option(help="float32, bfloat16, float16 or float64.")]
Sites = Annotated[
    str, typer.Option("--layers", help="Sites by glob: 'layer.*', '0,6,12', 'output', 'attention.*'.")
]
WithHeads = Annotated[bool, typer.Option("--heads", help="Add rows for every head of attention.")]
Counterfactual = Annotated[
    bool, typer.Option(help="Read attention again without each head's mean query, on 64 sequences.")
]
Config = Annotated[str | None, typer.Option(help="The config of a model that is one file of weights.")]
Revision = Annotated[str | None, typer.Option(help="A branch, tag or commit of the hub.")]
Pack = Annotated[bool, typer.Option(help="Join texts and cut full chunks, or take one text per sequence.")]
Tokens = Annotated[
    str, typer.Option(help="auto (the model's tokenizer), bytes or characters: their values as ids.")
]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code that comes with the model.")
]
Layer = Annotated[str, typer.Option(help="output, or the number of a layer.")]
Pool = Annotated[str, typer.Option(help="mean, cls or last: one vector per sequence; token: every vector.")]
Array = Annotated[
    str | None, typer.Option(help="Which array or column, where a file of vectors has several.")
]
Measures = Annotated[
    str | None,
    typer.Option(help="Measures by name, separated by commas. [default: all; see `isoscope list measures`]"),
]
Memory = Annotated[str, typer.Option(help="The most memory that records may take.")]
Seed = Annotated[int, typer.Option(help="Decides the jackknife groups and halves.")]
Json = Annotated[bool, typer.Option("--json", help="Print rows as JSON instead of a table.")]
Out = Annotated[Path | None, typer.Option(help="The run folder. [default: runs/NAME-ID]")]

# of the lab
Task = Annotated[str, typer.Argument(help="What is learnt; see `isoscope list tasks`.")]
Layers = Annotated[int, typer.Option(min=1, help="Blocks.")]
Width = Annotated[int, typer.Option(min=1, help="Dimensions of a hidden vector.")]
Heads = Annotated[int, typer.Option(min=1, help="Heads of attention.")]
Length = Annotated[int, typer.Option(min=2, help="Positions of a sequence.")]
Steps = Annotated[int, typer.Option(min=1, help="Updates.")]
PerUpdate = Annotated[int, typer.Option(min=1, help="Sequences an update.")]
Rate = Annotated[float, typer.Option(min=0.0, help="The largest rate of learning.")]
Bfloat16 = Annotated[bool, typer.Option("--bfloat16", help="Train in mixed precision.")]
DataOf = Annotated[
    str, typer.Option(help="'embedded', a text file, a folder of pictures (one a class) or of recordings.")
]

_UNITS = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def parse_names(text: str | None) -> list[str] | None:
    """Split a list of names at its commas; None stays None."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def parse_bytes(text: str) -> float:
    """Read a size.

    >>> parse_bytes("2GB")
    2000000000.0
    """
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]?B?)\s*", text.upper())
    unit = found[2] if found and (found[2] in _UNITS) else f"{found[2]}B" if found else ""
    if not found or unit not in _UNITS:
        raise IsoscopeError(f"'{text}' is no size of memory; write for example 500MB or 2GB.")
    return float(found[1]) * _UNITS[unit]


def parse_share(text: str, option: str) -> tuple[int, int]:
    """A share of the work: i/n is every nth, from the ith on, the first being 0.

    >>> parse_share("2/3", "--only")
    (2, 3)
    """
    first, _, count = text.partition("/")
    if not (first.isdecimal() and count.isdecimal() and int(first) < int(count)):
        raise IsoscopeError(f"{option} is i/n with i from 0 to n − 1, such as 0/4; got '{text}'.")
    return int(first), int(count)
