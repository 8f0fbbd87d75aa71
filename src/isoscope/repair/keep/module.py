"""A repair as the last module of a model.

It follows the contract of sentence-transformers' modules without importing them: it repairs the
``sentence_embedding`` of features. Called with a tensor [..., d] it gives the tensor repaired.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from isoscope.errors import IsoscopeError
from isoscope.repair.keep.export import load_repair, save_repair
from isoscope.repair.keep.maps import tensors_of
from isoscope.repair.keep.repair import Repair

SENTENCE = "sentence_embedding"


class RepairModule(nn.Module):
    """Moves vectors through a repair. Its tensors are buffers in float32: nothing in it is trained.

    They stay so in a model that is cast to 16 bits. `repair` keeps them in float64, which is what is saved.
    """

    def __init__(self, repair: Repair) -> None:
        super().__init__()
        self.repair = repair
        for place, step in enumerate(repair.steps):
            for name, tensor in tensors_of(step).items():
                self.register_buffer(f"{name}_{place}", tensor.float())

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """Go where the model goes, but not to fewer bits than float32."""
        held = dict(self.named_buffers())
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, tensor in held.items():
            new = self.get_buffer(name)
            if new.dtype in (torch.float16, torch.bfloat16):
                self.register_buffer(name, tensor.to(new.device))
        return self

    def forward(self, features: Any) -> Any:
        """Features with their sentence embedding repaired, or a tensor [..., d] repaired, [..., k]."""
        if isinstance(features, Tensor):
            return self._moved(features)
        return {**features, SENTENCE: self._moved(features[SENTENCE])}

    def _moved(self, vectors: Tensor) -> Tensor:
        if vectors.shape[-1] != self.repair.width:
            raise IsoscopeError(
                f"'{self.repair.name}' takes vectors of {self.repair.width} dimensions; "
                f"got the shape {tuple(vectors.shape)}."
            )
        exact = vectors.dtype if vectors.dtype in (torch.float32, torch.float64) else torch.float32
        moved = vectors.reshape(-1, self.repair.width).to(exact)
        for place, step in enumerate(self.repair.steps):
            buffers = {name: self.get_buffer(f"{name}_{place}").to(exact) for name in tensors_of(step)}
            moved = type(step)(**buffers).move(moved)  # the map as it is where the model is
        return moved.reshape(*vectors.shape[:-1], self.repair.gives).to(vectors.dtype)

    def get_embedding_dimension(self) -> int:
        """The dimensions it gives, as sentence-transformers asks for them."""
        return self.repair.gives

    get_sentence_embedding_dimension = get_embedding_dimension  # the name it had before version 6

    def save(self, output_path: str | Path) -> None:
        """Write the repair into a folder."""
        save_repair(self.repair, output_path)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read it back. One argument: sentence-transformers then fetches the folder itself."""
        return cls(load_repair(folder))

    def extra_repr(self) -> str:
        """What `print` shows of it."""
        return f"{self.repair.name}, {self.repair.width} to {self.repair.gives} dimensions"
