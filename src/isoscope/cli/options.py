"""What the verbs share: the help and the types of their options, how texts are read, and the call behind."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import fields
from functools import wraps
from typing import Annotated, Any, TypeVar, get_args

import typer

from isoscope.errors import IsoscopeError
from isoscope.kinds.table import named

Made = TypeVar("Made")
SHARED = {
    "model": "A hub id or a name of the zoo (@revision may follow), a folder, or a file of weights.",
    "limit": "Maximum number of sequences, or of lines or vectors of a file (0 = all).",
    "max_length": "Maximum tokens per sequence. [default: the model's limit, at most 512]",
    "batch_size": "Sequences per batch.",
    "device": "cpu, cuda, cuda:1 or mps. [default: the GPU if there is one]",
    "dtype": "float32, bfloat16, float16 or float64.",
    "layers": "Sites by glob: 'layer.*', '0,6,12', 'output', 'attention.*'.",
    "heads": "Add rows for every head of attention.",
    "counterfactual": "Read attention again without each head's mean query, on 64 sequences.",
    "config": "The config of a model that is one file of weights.",
    "revision": "A branch, tag or commit of the hub.",
    "pack": "Join texts and cut full chunks, or take one text per sequence.",
    "tokens": "auto (the model's tokenizer), bytes or characters: their values as ids.",
    "trust_remote_code": "Run code that comes with the model.",
    "layer": "output, or the number of a layer.",
    "pool": "mean, cls or last: one vector per sequence; token: every vector.",
    "array": "Which array or column, where a file of vectors has several.",
    "measures": "Measures by name, separated by commas, or all. [default: all but the costly ones]",
    "memory": "The most memory that records may take.",
    "seed": "Decides the jackknife groups and halves.",
    "seeds": "How many seeds; an interval takes three.",
    "run": "A run folder.",
    "json": "Print rows as JSON instead of a table.",
    "out": "The run folder. [default: runs/NAME-ID]",
}
"""The help of options by name, for verbs that have none of their own for it."""
MODEL_OR_VECTORS = (
    "A hub id or a name of the zoo (@revision may follow), a folder, or a file of vectors "
    "(.npy, .npz, .parquet, .safetensors or .csv)."
)
LAB = {
    "task": "What is learnt; see `isoscope list tasks`.",
    "layers": "Blocks.",
    "width": "Dimensions of a hidden vector.",
    "heads": "Heads of attention.",
    "length": "Positions of a sequence.",
    "steps": "Updates.",
    "batch_size": "Sequences an update.",
    "rate": "The largest rate of learning.",
    "bfloat16": "Train in mixed precision.",
    "seed": "Decides weights and batches.",
    "data": "'embedded', a text file, a folder of pictures (one a class) or of recordings.",
}
"""The help of what is trained in the lab."""
_HEARD = {
    "telling": "isoscope.cli.screen.terminal:TELLING",
    "watching": "isoscope.cli.screen.sweep:WATCHING",
}
"""What hears of the progress of a call, by the option that takes it."""


def verb(texts: Mapping[str, str]) -> Callable[[Callable[..., object]], Callable[..., None]]:
    """Make a function a verb: its options get their help by name, and Ctrl-C ends it with exit 130.

    What has no default is an argument, all else an option; a switch that is off has no `--no-…`. The run
    folder that a verb returns is shown, and so are rows that it could not keep.
    """

    def made(function: Callable[..., object]) -> Callable[..., None]:
        @wraps(function)
        def run(*args: object, **options: object) -> None:
            try:
                folder = function(*args, **options)
                if folder is not None:
                    named("isoscope.cli.screen.finish:finish")(folder, json=options.get("json", False))
            except IsoscopeError as error:
                if hasattr(error, "rows"):  # a NotKeptError, whose module would be slow to import
                    named("isoscope.cli.screen.finish:rescue")(error, json=options.get("json", False))
                raise
            except KeyboardInterrupt:
                said = "isoscope: stopped; what was finished is kept, and the same command goes on."
                typer.echo(said, err=True)
                raise typer.Exit(130) from None

        signature = inspect.signature(function, eval_str=True)
        helped = [_helped(each, {**SHARED, **texts}[each.name]) for each in signature.parameters.values()]
        run.__annotations__ = {each.name: each.annotation for each in helped}
        run.__signature__ = signature.replace(parameters=helped)  # type: ignore[attr-defined]
        return run

    return made


def _helped(parameter: inspect.Parameter, text: str) -> inspect.Parameter:
    """The parameter as an argument or an option with this help."""
    kind = parameter.annotation
    if hasattr(kind, "__metadata__"):
        kind, info = get_args(kind)
    elif parameter.default is parameter.empty:
        info = typer.Argument()
    else:
        names = [f"--{parameter.name.replace('_', '-')}"] if parameter.default is False else []
        info = typer.Option(*names)
    info = copy(info)
    info.help = text
    return parameter.replace(annotation=Annotated[kind, info])


def make_run(call: str, options: Mapping[str, Any], hears: str = "telling") -> object:
    """Call the function "module:name" with the options of a verb and a listener in its argument `hears`."""
    from isoscope.cli.screen import terminal

    with terminal.bar("loading libraries"):  # torch takes seconds
        told = {hears: named(_HEARD[hears])}
        function = named(call)
    return function(**{name: value for name, value in options.items() if name != "json"} | told)


def filled(kind: type[Made], options: Mapping[str, Any], **more: object) -> Made:
    """A dataclass whose fields are the options of the same names, and these more."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**({name: value for name, value in options.items() if name in names} | more))


def parse_names(text: str | None) -> list[str] | None:
    """Split a list of names at its commas; None stays None."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def parse_bytes(text: str) -> float:
    """Read a size such as 2GB."""
    size = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]?)B?\s*", text.upper())
    if not size:
        raise IsoscopeError(f"'{text}' is no size of memory; write for example 500MB or 2GB.")
    return float(size[1]) * 1e3 ** " KMGT".index(size[2] or " ")


def parse_share(text: str, option: str) -> tuple[int, int]:
    """A share of the work: i/n is every nth, from the ith on, the first being 0."""
    first, _, count = text.partition("/")
    if not (first.isdecimal() and count.isdecimal() and int(first) < int(count)):
        raise IsoscopeError(f"{option} is i/n with i from 0 to n − 1, such as 0/4; got '{text}'.")
    return int(first), int(count)


# a callback gives the verb what the text means
Limit = Annotated[int, typer.Option(callback=lambda count: count or None)]
Names = Annotated[str | None, typer.Option(callback=parse_names)]
Bytes = Annotated[str, typer.Option(callback=parse_bytes)]
Share = Annotated[str, typer.Option(callback=lambda text: parse_share(text, "--shard"))]
AtLeast0 = Annotated[int, typer.Option(min=0)]
AtLeast1 = Annotated[int, typer.Option(min=1)]
AtLeast2 = Annotated[int, typer.Option(min=2)]
Rate = Annotated[float, typer.Option(min=0.0)]
Task = Annotated[str, typer.Argument()]
