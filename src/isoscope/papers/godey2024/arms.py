"""The models of this paper: public ones, and those of the lab, of one block in every modality."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import pandas as pd

from isoscope.papers.workshop import Trained, Workshop


@dataclass(frozen=True)
class Arm:
    """A kind of model: how it is called, its task, what network, and if it attends."""

    name: str
    task: str
    network: str = "transformer"
    norm: str | None = None

    @property
    def attends(self) -> bool:
        """Whether it is a Transformer."""
        return self.network == "transformer"


ARMS = (
    Arm("characters, causal", "characters"), Arm("sub-words, causal", "subwords"),
    Arm("sub-words, masked", "masked"), Arm("image patches", "images"), Arm("sound frames", "frames"),
    Arm("CNN, BatchNorm", "images", "cnn", "batch"), Arm("CNN, no norm", "images", "cnn", "none")
)  # fmt: skip
PUBLIC = (
    *("bert", "roberta", "gpt2", "t5", "character-bert", "canine-s", "canine-c", "manta-lm", "byt5"),
    *("wav2vec2", "hubert", "whisper", "vit", "beit", "mit", "deit"),
)
"""Public Transformers, by name in the zoo."""
CONVOLUTIONAL = ("resnet", "efficientnet", "cvt", "convnext", "van")
"""Public networks that convolve, wholly or in part."""
NO_ATTENTION = (*(arm.name for arm in ARMS if not arm.attends), *CONVOLUTIONAL)

STATES = ("mean_cosine_between", "mean_cosine", "drift", "relative_drift", "mean_norm")


def trainings(workshop: Workshop, arms: Iterable[Arm]) -> list[Trained]:
    """Every training of these arms."""
    found = []
    for seed, arm in product(range(workshop.seeds), arms):
        experiment = workshop.experiment(arm.task, seed=seed, model=arm.network, norm=arm.norm)
        found.append(workshop.training(arm.name, experiment))
    return found


def states(workshop: Workshop) -> pd.DataFrame:
    """Rows of every layer of every model: of the lab at the last step of training, or of the public ones."""
    if workshop.scale.public:
        return workshop.all_observed((*PUBLIC, *CONVOLUTIONAL), STATES)
    ended, lost = workshop.train(trainings(workshop, ARMS))
    return pd.concat([*(each.read(STATES) for each in ended), lost], ignore_index=True)
