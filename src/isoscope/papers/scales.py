"""How large a reproduction is: every size of every scale, in one place.

`arm` is for models of which there are many (kinds × seeds), `trajectory` for those followed along training.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from isoscope.errors import chosen
from isoscope.lab.block.block import Setting


@dataclass(frozen=True)
class Size:
    """The shape of a model of the lab, how long it trains, and when it is looked at."""

    layers: int
    width: int
    heads: int
    length: int
    steps: int
    batch_size: int
    rate: float
    checkpoints: str

    @property
    def said(self) -> str:
        """In words."""
        return (
            f"{self.layers} layers, width {self.width}, {self.heads} heads, {self.steps} steps of "
            f"{self.batch_size} × {self.length} at rate {self.rate:g}, looked at {self.checkpoints}"
        )


@dataclass(frozen=True)
class Scale:
    """A scale: its sizes, how many seeds, how many processes side by side, and if public models are read.

    `block` is the setting of an untrained block, `image_rate` the most that a Transformer of patches learns
    at: at .001 and a width of 384 its gradients in bfloat16 end as NaN.
    """

    name: str
    says: str
    arm: Size
    trajectory: Size
    seeds: int
    parallel: int
    bfloat16: bool = False
    public: bool = False
    block: Setting = field(default_factory=lambda: Setting(passes=0))
    image_rate: float = 1.0

    @property
    def sizes(self) -> dict[str, object]:
        """What it says of the size of every model, as a run's question has it."""
        block = f"{self.block.sequences} × {self.block.length}"
        return {"arm": self.arm.said, "trajectory": self.trajectory.said, "block": block}


_GPU_ARM = Size(6, 384, 6, 256, steps=1000, batch_size=32, rate=1e-3, checkpoints="1000")
_GPU_TRAJECTORY = Size(8, 512, 8, 256, steps=1500, batch_size=32, rate=1e-3, checkpoints="log:60")

SCALES = (
    Scale(
        "laptop", "lab models from embedded data; minutes on two cores",
        arm=Size(4, 64, 4, 64, steps=300, batch_size=16, rate=3e-3, checkpoints="300"),
        trajectory=Size(4, 64, 4, 64, steps=600, batch_size=16, rate=3e-3, checkpoints="log:16"),
        seeds=4, parallel=2, block=Setting(length=128, sequences=8, passes=0),
    ),
    Scale(
        "gpu", "larger lab models, from real data where --data gives it; half an hour on one GPU",
        _GPU_ARM, _GPU_TRAJECTORY, seeds=5, parallel=4, bfloat16=True, image_rate=3e-4,
    ),
    Scale(
        "full", "the public models of the papers, and lab models as at gpu where a claim is of training",
        _GPU_ARM, _GPU_TRAJECTORY, seeds=5, parallel=1, bfloat16=True, public=True, image_rate=3e-4,
    ),
)  # fmt: skip


def scale_of(name: str) -> Scale:
    """The scale of a name."""
    return chosen("scale", name, SCALES)
