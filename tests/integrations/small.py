"""A language model and data so small that training them takes no time, and what two trainings must share."""

from __future__ import annotations

import pandas as pd
import torch
import transformers
from torch import Tensor

from isoscope.run.monitor.alarms import Alarm
from isoscope.run.observe.observe import observe

VOCABULARY, LENGTH = 23, 12
MEASURES = ("mean_cosine_between", "relative_drift", "normalised_entropy", "not_finite")


def language_model(seed: int = 0) -> transformers.GPT2LMHeadModel:
    """Two layers, two heads, dropout on: random states that are moved show in the losses."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return transformers.GPT2LMHeadModel(
            transformers.GPT2Config(
                vocab_size=VOCABULARY,
                n_positions=LENGTH,
                n_embd=16,
                n_layer=2,
                n_head=2,
                bos_token_id=0,
                eos_token_id=0,
                use_cache=False,
                loss_type="ForCausalLM",
            )
        )


def sentences(count: int, seed: int) -> list[dict[str, Tensor]]:
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(VOCABULARY, (count, LENGTH), generator=random)
    return [{"input_ids": row, "labels": row} for row in ids]


def probe() -> list[dict[str, Tensor]]:
    """Two batches of different sizes."""
    rows = torch.stack([row["input_ids"] for row in sentences(7, seed=5)])
    return [{"input_ids": rows[:4]}, {"input_ids": rows[4:]}]


def assert_same_weights(one: torch.nn.Module, other: torch.nn.Module) -> None:
    theirs = other.state_dict()
    assert one.state_dict().keys() == theirs.keys()
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, theirs[name]), name


def assert_same_rows(one: pd.DataFrame, other: pd.DataFrame) -> None:
    """The same numbers at the same places, whichever run they belong to."""
    where = ["kind", "layer", "head", "measure"]
    sides = [
        table.sort_values(where)[[*where, "value", "n"]].reset_index(drop=True) for table in (one, other)
    ]
    pd.testing.assert_frame_equal(*sides, rtol=1e-9, atol=1e-12)


def assert_rows_of_bfloat16(rows: pd.DataFrame) -> None:
    """The rows of the untrained model are those that it has under autocast."""
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
        low = observe(language_model(), probe(), measures=MEASURES, heads=True).frame()
    full = observe(language_model(), probe(), measures=MEASURES, heads=True).frame()
    mine, low, full = (
        table[table.measure == "mean_cosine_between"].value.to_numpy() for table in (rows, low, full)
    )
    assert abs(mine - low).max() < 1e-2 * abs(mine - full).max()


class Sink:
    """Keeps the steps that it was told, and that it was closed."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def __call__(self, step: int, summaries: object) -> None:
        self.told.append(step)

    def close(self) -> None:
        self.told.append("closed")


def fourth(rows: pd.DataFrame) -> Alarm | None:
    """An alarm at the fourth step."""
    return Alarm("fourth", 4, "layer.1", "the fourth step") if rows.step.max() == 4 else None
