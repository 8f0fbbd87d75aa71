"""Probes: how much a linear reader finds in a frozen model's states of what the model was not taught.

States are averaged over positions, standardised, and read by a logistic regression, one a layer, that is
fitted on some examples and judged on others. The ridge is fixed (1 against the summed loss), so that no arm
is given a search of its own. Three kinds of questions: labelled texts (a file), pictures of other classes (a
folder), and without any data `order`: in half of the sequences a stretch is reversed. The mean of what enters
the first block is the same for both, so layer 0 knows nothing of it: it is the control.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from isoscope.data.documents import documents
from isoscope.errors import IsoscopeError
from isoscope.lab.tasks.base import Lesson, data_hash
from isoscope.lab.tasks.images import images
from isoscope.models.blocks import find_blocks
from isoscope.models.tap import at_rest, tap
from isoscope.results.reading import Reading
from isoscope.sites import Site
from isoscope.stats.seen import home

ORDER = "order"
MEASURE = "probe_accuracy"
MOST = 20_000  # examples of a file
DRAWN = 4096  # examples that a reader is fitted on where they are drawn, and the most it is judged on then
FIFTH = 5  # of a file's texts, one in five is judged on
AT_ONCE = 256
RIDGE, ITERATIONS = 1.0, 200
HISTORY = 20  # past steps that the search remembers; 100 find nothing more and take three times as long
UNKNOWN = "<unk>"

EXPLANATION: Mapping[str, object] = {
    "family": "probe", "title": "accuracy of a probe",
    "formula": "share right of a logistic regression on the mean state of a sequence",
    "says": "How much of something that the model was not taught can be read off its states by a line.",
    "misleads": "A line that fails does not show that the states do not know. Two seeds may differ by more "
    "than the interval, which is of the judged examples alone.",
    "null": "the share of the most frequent class among the judged examples",
    "interval": "Wilson's, over the judged examples", "source": "isoscope", "range": "0 to 1",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Questions:
    """Examples with labels: inputs [n, t] or [n, t, c], which positions are there, and which are judged."""

    inputs: Tensor
    there: Tensor  # [n, t]
    labels: Tensor  # [n]
    judged: Tensor  # [n]
    facts: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kinds = [len(set(self.labels[part].tolist())) for part in (self.judged, ~self.judged)]
        if min(kinds) < 2:
            raise IsoscopeError(
                f"a probe needs two classes or more, both to be fitted on and judged on; "
                f"'{self.facts.get('probe')}' has {len(self.labels)} examples of "
                f"{len(set(self.labels.tolist()))} classes."
            )


def probe(model: nn.Module, asked: Questions) -> dict[int, Reading]:
    """Accuracy of a reader of every layer; layer 0 is what enters the first block."""
    found = {}
    labels, part = asked.labels, asked.judged
    for layer, states in pooled_states(model, asked).items():
        states = states.cpu()  # a search asks at every turn, and a GPU that is shared answers late
        read = fit_reader(states[~part], labels[~part])
        right, n = int((read(states[part]) == labels[part]).sum()), int(part.sum())
        null = float(labels[part].bincount().max()) / n
        found[layer] = Reading(right / n, n, null, *wilson(right, n))
    return found


class _Seen(Exception):  # noqa: N818  (no error: what is wanted has been seen)
    """The last block has given its states."""


def pooled_states(model: nn.Module, asked: Questions) -> dict[int, Tensor]:
    """Mean states of examples in every layer, [n, d] in float64; what follows the last block is not run."""
    device = next(model.parameters()).device
    blocks = find_blocks(model)
    last = Site("layer", len(blocks))
    found: dict[int, list[Tensor]] = {}
    with at_rest(model):
        for start in range(0, len(asked.labels), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            inputs, there = asked.inputs[part].to(device), asked.there[part].to(device)
            longest = int(there.sum(1).max())

            def layer(site: Site, seen: Tensor, there: Tensor = there[:, :longest]) -> None:
                if site.kind == "layer" and site.layer is not None:
                    weight = there[..., None].to(home(seen.device), torch.float64)
                    total = (seen.to(weight.device, torch.float64) * weight).sum(1)
                    found.setdefault(site.layer, []).append(total / weight.sum(1))
                if site == last:
                    raise _Seen

            with tap(model, blocks, layer), suppress(_Seen):
                mask = None if bool(there[:, :longest].all()) else there[:, :longest]
                model(inputs[:, :longest], mask)
    return {site: torch.cat(parts) for site, parts in found.items()}


def fit_reader(states: Tensor, labels: Tensor) -> Callable[[Tensor], Tensor]:
    """A logistic regression of labels [n] on states [n, d], with its ridge; gives the class of others."""
    mean, spread = states.mean(0), states.std(0, correction=0)
    spread = torch.where(spread > 1e-9 * spread.max(), spread, torch.inf)  # what never varies says nothing
    standard = (states - mean) / spread
    classes = int(labels.max()) + 1
    weight = torch.zeros(states.shape[1], classes, dtype=states.dtype, device=states.device)
    bias = torch.zeros(classes, dtype=states.dtype, device=states.device)
    learnt = [weight.requires_grad_(), bias.requires_grad_()]
    search = torch.optim.LBFGS(
        learnt, max_iter=ITERATIONS, history_size=HISTORY, line_search_fn="strong_wolfe"
    )

    def cost() -> Tensor:
        search.zero_grad()
        ridge = RIDGE / 2 * weight.square().sum()
        loss = F.cross_entropy(standard @ weight + bias, labels) + ridge / len(labels)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    with torch.enable_grad():
        search.step(cost)  # type: ignore[no-untyped-call]
    weight, bias = weight.detach(), bias.detach()
    return lambda others: ((others - mean) / spread @ weight + bias).argmax(1)


def wilson(right: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    z = 1.959964
    share, width = right / n, z * math.sqrt(right / n * (1 - right / n) / n + z * z / (4 * n * n))
    middle, size = share + z * z / (2 * n), 1 + z * z / n
    return (middle - width) / size, (middle + width) / size


def questions(address: str, task: str, data: str, length: int, lesson: Lesson) -> Questions:
    """What is asked of a model of this lesson: `order`, a file of labelled texts, a folder of pictures."""
    if address == ORDER:
        return order(lesson)
    if task in ("characters", "words"):
        return texts(address, task, data, length)
    if task == "images":
        return pictures(address, lesson)
    raise IsoscopeError(f"--probe of the task {task} is '{ORDER}'; texts are for characters and words.")


def order(lesson: Lesson) -> Questions:
    """Whether a stretch of a sequence, a quarter of it, is reversed; long sequences are cut in pieces."""
    random = torch.Generator().manual_seed(0)
    piece = lesson.length if lesson.pooled else max(min(lesson.length, 16), lesson.length // 4)
    count = -(-DRAWN * piece // lesson.length)
    parts = [_cut(some.inputs, piece)[:DRAWN] for some in (lesson.draw(random, count), lesson.held)]
    inputs = torch.cat(parts)
    labels = torch.rand(len(inputs), generator=random) < 0.5
    size = max(2, piece // 4)
    starts = torch.randint(piece - size + 1, (len(inputs),), generator=random)
    place = torch.arange(piece).expand(len(inputs), piece)
    inside = (place >= starts[:, None]) & (place < starts[:, None] + size) & labels[:, None]
    place = torch.where(inside, 2 * starts[:, None] + size - 1 - place, place)
    turned = torch.stack([one[at] for one, at in zip(inputs, place, strict=True)])
    judged = torch.arange(len(inputs)) >= len(parts[0])
    facts = {"probe": ORDER, "probe_hash": data_hash(turned)}
    return Questions(turned, torch.ones(turned.shape[:2], dtype=torch.bool), labels.long(), judged, facts)


def _cut(inputs: Tensor, piece: int) -> Tensor:
    """Sequences [n, t, ...] as pieces of a length, what is left over left out."""
    whole = inputs.shape[1] // piece
    return inputs[:, : whole * piece].reshape(-1, piece, *inputs.shape[2:])


def texts(address: str, task: str, data: str, length: int) -> Questions:
    """Labelled texts, a line each: the label, a tab, the text. One in five, by a hash of it, is judged.

    They are spelt as the lesson of `data` spells: what it does not know is `<unk>` where it knows that, else
    left out. Of a long text the first `length` items are read.
    """
    encode = encoder(task, data)
    found: dict[str, tuple[str, list[int], int]] = {}
    for number, line in enumerate(documents(address, whole=False), start=1):
        label, tab, text = line.partition("\t")
        if not tab:
            raise IsoscopeError(
                f"line {number} of {address} has no tab; a probe's lines are label, tab, text."
            )
        ids = encode(text)[:length]
        if ids:
            own = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
            found[text] = (label.strip(), ids, own)
    kept = sorted(found.values(), key=lambda one: one[2])[:MOST]
    names = sorted({label for label, _, _ in kept})
    longest = max((len(ids) for _, ids, _ in kept), default=0)
    inputs = torch.zeros(len(kept), longest, dtype=torch.long)
    there = torch.zeros(len(kept), longest, dtype=torch.bool)
    for row, (_, ids, _) in enumerate(kept):
        inputs[row, : len(ids)] = torch.tensor(ids)
        there[row, : len(ids)] = True
    labels = torch.tensor([names.index(label) for label, _, _ in kept], dtype=torch.long)
    judged = torch.tensor([own % FIFTH == 0 for _, _, own in kept], dtype=torch.bool)
    facts = {"probe": address, "probe_hash": data_hash(inputs, labels), "probe_classes": names}
    return Questions(inputs, there, labels, judged, facts)


@lru_cache(maxsize=1)
def encoder(task: str, data: str) -> Callable[[str], list[int]]:
    """How the lesson of these data spells a text: `lab.tasks.text` numbers what occurs in them, sorted."""
    text = "".join(documents(data))
    if task == "characters":
        letters = {letter: number for number, letter in enumerate(sorted(set(text)))}
        return lambda words: [letters[letter] for letter in words if letter in letters]
    known = {word: number for number, word in enumerate(sorted({*text.split(), "\n"}))}
    none = known.get(UNKNOWN)
    return lambda line: [at for word in line.split() if (at := known.get(word, none)) is not None]


def pictures(address: str, lesson: Lesson) -> Questions:
    """Pictures in a folder a class, such as classes that the model never saw; a fifth is judged."""
    if not Path(address).is_dir():
        raise IsoscopeError(
            f"--probe of images is '{ORDER}' or a folder with a folder a class; got '{address}'."
        )
    other = images(address, lesson.length)
    if (other.vocabulary, other.length) != (lesson.vocabulary, lesson.length):
        raise IsoscopeError(
            f"the pictures in '{address}' are {other.length} patches of {other.vocabulary} numbers, and the "
            f"model takes {lesson.length} of {lesson.vocabulary}; give pictures of the same size."
        )
    drawn = other.draw(torch.Generator().manual_seed(0), DRAWN)
    inputs = torch.cat([drawn.inputs, other.held.inputs[:DRAWN]])
    labels = torch.cat([drawn.targets, other.held.targets[:DRAWN]])
    judged = torch.arange(len(inputs)) >= DRAWN
    hashed, classes = other.facts["data_hash"], other.facts["classes"]
    facts = {"probe": address, "probe_hash": hashed, "probe_classes": classes}
    return Questions(inputs, torch.ones(inputs.shape[:2], dtype=torch.bool), labels, judged, facts)
