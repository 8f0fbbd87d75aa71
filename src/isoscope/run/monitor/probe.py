"""The probe: a few batches that a model is looked at with, the same at every step of its training.

It is read once, when the monitor is made, so that a loader that shuffles gives one probe for the whole run.
The model is surveyed then as well; a look is one pass of the folder that `observe` uses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from isoscope.data.batch import Batch, as_batch
from isoscope.data.counting import Counting
from isoscope.data.source import Data
from isoscope.errors import IsoscopeError
from isoscope.measures.base import Measure
from isoscope.measures.table import choose
from isoscope.models.attention.tap import Learnt
from isoscope.models.source import Model
from isoscope.models.survey import Survey
from isoscope.models.tap import at_rest
from isoscope.run.near import near
from isoscope.run.observe.fold import AGAIN, OF_ATTENTION, SEQUENCES, Folder, smallest_keys
from isoscope.run.observe.memory import DEFAULT, plan
from isoscope.run.observe.observation import Observation
from isoscope.run.observe.observe import (
    as_batches,
    counting_of,
    look,
    offered_by,
    refuse_nothing,
    refuse_without_attention,
    stats_of,
    told_counting,
)
from isoscope.sites import Site, select

MEASURES = (  # what costs O(d) a vector, and attention rows: no covariance, no sample
    "mean_cosine", "mean_cosine_between", "drift", "relative_drift", "mean_norm", "largest_activation",
    "rank_residual", "not_finite", "entropy", "normalised_entropy", "largest_weight", "largest_score",
    "score_std", "sink_mass", "not_finite_rows", "drift_share", "normalised_entropy_without_drift",
    "sink_mass_without_drift", "query_drift", "key_drift", "query_relative_drift", "key_relative_drift",
    "query_key_cosine", "query_key_product",
)  # fmt: skip
LARGEST, MOST = 1 << 30, 1024  # bytes and batches that a probe may hold
MATRICES, NUMBERS = 8, 16  # that tell one model's weights from another's

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Probe:
    """The batches, on the CPU, with what is read there and what the model was like when it was made."""

    batches: tuple[Batch, ...]
    sites: tuple[Site, ...]
    measures: tuple[Measure, ...]
    found: Survey
    heads: bool
    shapes: Shapes
    pictures: bool
    counting: Counting
    counted: Mapping[str, str] | None = None  # by which policy; None where batches say it themselves
    notes: tuple[str, ...] = ()
    learnt: Learnt = field(default_factory=Learnt)

    @property
    def whole(self) -> bool:
        """Whether it must be read in one piece, since a mean over all of it is taken away again."""
        return any(stat in measure.stats for measure in self.measures for stat in AGAIN)

    @property
    def digest(self) -> str:
        """Sixteen hex digits of the keys of all sequences, which are of their content."""
        keys = torch.cat([batch.keys for batch in self.batches]).tolist()
        return hashlib.blake2b(repr(keys).encode(), digest_size=8).hexdigest()

    def facts(self) -> dict[str, object]:
        """What fixes the rows: part of the question that a run asks."""
        return {
            "probe": self.digest,
            "sequences": sum(map(len, self.batches)),
            "sites": [str(site) for site in self.sites],
            "measures": [measure.name for measure in self.measures],
            "heads": self.heads,
            **({} if self.counted is None else {"counting": dict(self.counted)}),
        }

    def folder(self) -> Folder:
        """A fresh folder for these sites and measures."""
        stats = stats_of(self.measures)
        widths = [self.found.width(site) for site in self.sites if site in self.found.shapes]
        kept = plan(widths, [stat for stat in stats if stat not in OF_ATTENTION], DEFAULT)
        attention = tuple(stat for stat in stats if stat in OF_ATTENTION)
        return Folder(self.sites, kept, attention, self.found, learnt=self.learnt, pictures=self.pictures)


def take_up(
    source: Model,
    given: str | Iterable[Any],
    *,
    measures: str | Iterable[str] | None,
    layers: str,
    heads: bool,
    counterfactual: bool,
    pictures: bool,
    skip_first: bool | None = None,
    skip_special: bool | None = None,
) -> Probe:
    """Read the probe, survey the model on it and settle what is measured, or say why that cannot be."""
    choose(measures)  # a name that does not exist is told before anything runs
    _refuse_probe(given)
    read = isinstance(given, str | Data)
    opened = as_batches(given, source, 0, skip_first=skip_first, skip_special=skip_special) if read else given
    items = list(_copies(opened))
    if not items:
        raise IsoscopeError("the probe holds no batch; give at least one, such as [next(iter(loader))].")
    found = look(source, items[0])
    weight = next(source.module.parameters(), None)
    batches = []
    counting = counting_of(source, skip_first=skip_first, skip_special=skip_special)
    said, remark = told_counting(opened, items[0], counting, found.input_axis)
    for item in items:
        batch = as_batch(item, seed=0, batch_axis=found.input_axis)
        batch = batch if isinstance(item, Batch) else counting.apply(batch, found.input_axis)
        batches.append(
            batch.as_floats(weight.dtype) if isinstance(item, Batch) and weight is not None else batch
        )
    sites = select((*found.shapes, *found.attention), layers)
    offered = offered_by(batches[0], sites, counterfactual)
    chosen = choose(measures, offered)
    if measures is None:
        chosen = tuple(measure for measure in choose(MEASURES) if measure.needs <= offered)
    refuse_without_attention(chosen, found, measures)
    refuse_nothing(chosen, sites, layers)
    about = heads, shapes_of(source.module), pictures, counting, said, remark
    return Probe(tuple(batches), sites, chosen, found, *about)


def observed(probe: Probe, source: Model, batches: Sequence[Batch], idle: int = 0) -> Observation:
    """Look at the model with these batches of the probe; `idle` more forwards keep sharded ranks in step."""
    module, folder = source.module, probe.folder()
    device = next((weight.device for weight in module.parameters()), torch.device("cpu"))
    held: list[Batch] = []
    with folder.attached(module):
        for batch in batches:
            near = batch.to(device)
            folder.fold(module, near)
            if folder.counterfactual:
                held = smallest_keys([*held, near], SEQUENCES, probe.found.input_axis)
    if folder.counterfactual:
        for _ in folder.fold_counterfactual(module, held):
            pass
    for _ in range(idle):
        with at_rest(module):
            probe.batches[0].to(device).call(module)
    return as_observation(probe, source, folder)


def as_observation(probe: Probe, source: Model, folder: Folder) -> Observation:
    """What a folder holds, as an observation; records on the CPU, as readings take them number by number."""
    weight = next(source.module.parameters(), None)
    far = weight is not None and weight.device.type != "cpu"
    return Observation(
        records=near(folder.records) if far else folder.records,
        measures=probe.measures,
        model=source.name,
        revision=source.revision,
        step=source.step,
        facts={**source.facts(), **folder.facts},
        remarks=(*probe.notes, *folder.remarks()),
        not_kept=folder.kept.not_kept,
        heads=probe.heads,
        inputs=folder.inputs,
    )


def shapes_of(module: nn.Module) -> Shapes:
    """The shape of every weight, by name."""
    return {name: tuple(weight.shape) for name, weight in module.named_parameters()}


def changed_shape(probe: Probe, module: nn.Module) -> str:
    """Which weight or block is not what it was when the probe was made; empty where none is."""
    now = shapes_of(module)
    for name in sorted(now.keys() | probe.shapes.keys()):
        if now.get(name) != probe.shapes.get(name):
            was, is_now = (shapes.get(name) for shapes in (probe.shapes, now))
            said = ("absent" if shape is None else str(list(shape)) for shape in (was, is_now))
            return "{} was {} and is {}".format(name, *said)
    there = {id(part) for part in module.modules()}
    gone = [name for name, block in probe.found.blocks.items() if id(block) not in there]
    return f"the block {gone[0]} is another module" if gone else ""


def weights_sample(module: nn.Module) -> str:
    """Sixteen hex digits of the first numbers of eight matrices; empty where they lie on several ranks.

    The matrices are spread over the model, the last among them. Norms start alike whatever the seed; and all
    weights are hashed nowhere in training: of a large model that takes longer than looking at it.
    """
    weights = [weight.detach() for weight in module.parameters() if weight.dim() > 1]
    if not weights or any(type(weight) not in (Tensor, nn.Parameter) for weight in weights):
        return ""
    last = len(weights) - 1
    chosen = sorted({last - last * number // MATRICES for number in range(MATRICES)})
    first = [weights[i].flatten()[:NUMBERS].to(weights[0].device, torch.float64) for i in chosen]
    return hashlib.blake2b(torch.cat(first).cpu().numpy().tobytes(), digest_size=8).hexdigest()


def _refuse_probe(given: object) -> None:
    """Say what a probe is where this is none, and where reading it would change training."""
    if isinstance(given, Tensor) or not isinstance(given, Iterable):
        kind = "a single tensor" if isinstance(given, Tensor) else type(given).__name__
        raise IsoscopeError(f"the probe is a list of batches, such as [batch]; got {kind}.")
    if getattr(given, "persistent_workers", False):
        raise IsoscopeError(
            "the probe is a DataLoader with persistent workers, and reading it would set back its epoch; "
            "give list(itertools.islice(loader, 8)) of a loader of its own."
        )


def _copies(given: Iterable[Any]) -> Iterator[Any]:
    """Each item as a copy on the CPU, so that a loader may use its memory again."""
    size = 0

    def copy(x: Any) -> Any:
        nonlocal size
        if not isinstance(x, Tensor):
            return x
        size += x.numel() * x.element_size()
        return x.detach().to("cpu", copy=True)

    for number, item in enumerate(given):
        if number == MOST:
            raise IsoscopeError(
                f"the probe holds more than {MOST} batches; give fewer, such as "
                "list(itertools.islice(loader, 8))."
            )
        inputs = item.inputs if isinstance(item, Batch) else item
        made = {name: copy(x) for name, x in inputs.items()} if isinstance(inputs, Mapping) else copy(inputs)
        yield replace(item, inputs=made) if isinstance(item, Batch) else made
        if size > LARGEST:
            raise IsoscopeError(
                f"the probe is larger than {LARGEST >> 30} GiB; give fewer batches, such as "
                "list(itertools.islice(loader, 8))."
            )
