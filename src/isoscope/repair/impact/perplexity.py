"""Perplexity of a causal language model whose last state is repaired before the head.

The repair is fitted on what enters the head, over other text, and put there by a hook: what a model does to
its logits after the head is then done as ever. Position 0 and special tokens neither fit nor judge. The head
reads fixed coordinates, so whitening is turned back into them: VΛ^{−½}Vᵀ in place of Λ^{−½}Vᵀ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from isoscope.data.batch import Batch
from isoscope.data.documents import documents
from isoscope.data.source import Data
from isoscope.errors import IsoscopeError
from isoscope.models.inputs import open_data
from isoscope.models.source import Model, quiet
from isoscope.models.tap import at_rest
from isoscope.repair.fit.sample import SHOWN, Sample
from isoscope.repair.fit.transforms import fit
from isoscope.repair.impact.impact import AS_IT_IS, Judged
from isoscope.repair.impact.maps import cannot_matter_to_head
from isoscope.repair.impact.outcome import MAIN, Array, Outcome, changed
from isoscope.repair.keep.maps import Turned
from isoscope.repair.keep.repair import Repair
from isoscope.run.observe.observe import describe

LONG = 40  # letters: shorter lines, as headings are, may be in both texts


@dataclass(frozen=True, eq=False)
class Speaker:
    """A causal language model and the head that reads its last state."""

    model: Model
    head: nn.Module

    @property
    def weight(self) -> Tensor:
        """The head's weight, [words, d]."""
        found = self.head.weight
        assert isinstance(found, Tensor)
        return found


def open_speaker(model: Model) -> Speaker:
    """Load a model again, with its head; refuses one that has none, or that sees what it is to predict."""
    import transformers

    with quiet():
        try:
            made: Any = transformers.AutoModelForCausalLM.from_pretrained(
                model.name, revision=model.revision or None, dtype=torch.float32, output_loading_info=True
            )
        except (OSError, ValueError, KeyError, RuntimeError) as reason:
            raise IsoscopeError(
                f"'{model.name}' is no causal language model, so it has no perplexity."
            ) from reason
    module, loading = made
    head = module.get_output_embeddings()
    if head is None or loading["missing_keys"]:
        raise IsoscopeError(f"'{model.name}' comes without the head of a language model: no perplexity.")
    where = next(model.module.parameters()).device
    speaker = Speaker(replace(model, module=module.to(where).eval()), head)
    _refuse_foresight(speaker)
    return speaker


def _refuse_foresight(speaker: Speaker) -> None:
    """Change the last token: what is said before it must not move."""
    module = speaker.model.module
    table: Any = module.get_input_embeddings()  # type: ignore[operator]
    device = next(module.parameters()).device
    ids = torch.arange(8, device=device)[None] % table.num_embeddings
    other = ids.clone()
    other[0, -1] = (ids[0, -1] + 1) % table.num_embeddings
    with at_rest(module):
        one, two = (module(input_ids=each).logits[0, :-1].float() for each in (ids, other))
    if not torch.allclose(one, two, rtol=1e-3, atol=1e-3 * float(one.abs().max())):
        raise IsoscopeError(f"'{speaker.model.name}' sees the token it is to predict: it has no perplexity.")


def head_states(speaker: Speaker, data: Data) -> Tensor:
    """What enters the head at positions that count, [n, d]."""
    found = ((batch, speak(speaker, batch)[0]) for batch in data)
    return torch.cat([states[_counted(batch).to(states.device)].float().cpu() for batch, states in found])


def speak(speaker: Speaker, batch: Batch, repair: Repair | None = None) -> tuple[Tensor, Tensor]:
    """What enters the head, [b, t, d], and the logits [b, t, words], the state repaired before."""
    module, seen = speaker.model.module, []

    def before(head: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        seen.append(inputs[0].detach())
        return None if repair is None else (repair.apply(inputs[0]), *inputs[1:])

    ready = batch.to(next(module.parameters()).device)
    with at_rest(module), speaker.head.register_forward_pre_hook(before):
        logits = ready.call(module).logits
    return seen[-1], logits


def perplexity(speaker: Speaker, data: Data, repair: Repair | None = None, name: str = "text") -> Outcome:
    """Exp of the mean loss of the next token, over positions that count; drawn over sequences."""
    losses, counts = [], []
    for batch in data:
        _, logits = speak(speaker, batch, repair)
        tokens = batch.tokens()
        assert tokens is not None
        judged = _counted(batch)[:, :-1] & _there(batch)[:, 1:]
        targets = tokens[:, 1:].to(logits.device)
        lost = F.cross_entropy(logits[:, :-1].float().transpose(1, 2), targets, reduction="none")
        losses.append((lost.cpu().double() * judged).sum(1))
        counts.append(judged.sum(1))
    total, many = (np.concatenate([each.numpy() for each in parts]) for parts in (losses, counts))
    kept = (many > 0) & np.isfinite(total)
    total, many = total[kept], many[kept].astype(np.float64)

    def score(at: Array) -> Array:
        found: Array = np.exp(total[at].sum(1) / many[at].sum(1))
        return found

    given, left_out = total / many, int((~kept).sum())
    named = f"perplexity.{name}", "sequences", len(total), score, given, "head", -1
    return Outcome(*named, left_out=left_out, tag=MAIN)


def in_place(repair: Repair) -> Repair:
    """The same repair with its last coordinates those of the model: A = SQ, Q's rows orthonormal, as QᵀSQ.

    What follows a whitening was fitted in its coordinates, so all are turned back in one step at the end.
    """
    back: Tensor | None = None
    for step in repair.steps:
        if isinstance(step, Turned):
            left, _, right = torch.linalg.svd(step.matrix, full_matrices=False)
            turned = right.T @ left.T  # [d, k]
            back = turned if back is None else back @ turned
    if back is None:
        return repair
    last = Turned(back.new_zeros(back.shape[1]), back)
    return replace(repair, steps=(*repair.steps, last))


def _counted(batch: Batch) -> Tensor:
    return _there(batch) if batch.counts is None else batch.counts.cpu()


def _there(batch: Batch) -> Tensor:
    """What is no padding, [b, t]."""
    assert isinstance(batch.inputs, dict)
    return batch.inputs["attention_mask"].bool().cpu()


@dataclass(frozen=True, eq=False)
class Spoken:
    """A language model, the text it is judged on, and the text that repairs are fitted on."""

    name: str
    speaker: Speaker
    judged: Data
    fitted: Data


def open_spoken(
    model: Model, text: str, fitted: str | None, sequences: int = 64, max_length: int | None = None,
    batch_size: int = 8
) -> Spoken:  # fmt: skip
    """Read both texts, packed into full sequences, and refuse those that share a line."""
    if fitted is None:
        raise IsoscopeError("perplexity takes repairs fitted on other text than --text; give --fit.")
    refuse_shared_lines(text, fitted)
    speaker = open_speaker(model)
    data = [
        open_data(
            address, speaker.model, limit=sequences, max_length=max_length, batch_size=min(batch_size, 8)
        )
        for address in (text, fitted)
    ]
    return Spoken(Path(text).name.split(".")[0] or "text", speaker, *data)


def refuse_shared_lines(text: str, fitted: str) -> None:
    """Say that a line of some length is in both texts, or every line of what is judged."""
    mine, others = ({line.strip() for line in documents(each, whole=False)} for each in (text, fitted))
    both = mine if mine <= others else {line for line in mine & others if len(line) >= LONG}
    if both:
        raise IsoscopeError(
            f"{len(both)} lines of {text}, which is judged, are in {fitted} as well, which repairs are "
            "fitted on; give another --fit."
        )


def judge_spoken(spoken: Spoken, recipes: Sequence[str], seed: int = 0) -> list[Judged]:
    """Fit every repair on what enters the head, and judge the perplexity before and after."""
    states = head_states(spoken.speaker, spoken.fitted)
    sample = Sample.of(head_states(spoken.speaker, spoken.judged)).points
    found: list[Judged] = []
    for recipe in ["", *recipes]:
        repair = in_place(fit(recipe, states, precise=True)) if recipe else None
        outcome = perplexity(spoken.speaker, spoken.judged, repair, spoken.name)
        points = sample.double()[:4096]
        cloud = points if repair is None else repair.apply(points)
        geometry = describe(cloud, measures=SHOWN, seed=seed).rows()
        changes = []
        if repair is not None:
            reason = cannot_matter_to_head(repair, spoken.speaker.weight)
            changes = [changed(found[0].outcomes[0], outcome, reason, seed)]
        found.append(Judged(recipe or AS_IT_IS, repair, [outcome], changes, geometry))
    return found
