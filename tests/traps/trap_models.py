"""Small models written by hand, in which each trap can be set."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    """A block that mixes no positions, so that a vector depends on its own token alone."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 2 * width)
        self.back = nn.Linear(2 * width, width)

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden + self.back(torch.relu(self.wide(self.norm(hidden))))


class Model(nn.Module):
    """Embedding, blocks, final norm; position 0 gets `sink` added to its first dimension."""

    def __init__(self, *, width: int = 8, blocks: int = 3, sink: float = 0.0, recompute: str = "") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(64, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.sink, self.recompute = sink, recompute

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        hidden = self.embedding(input_ids)
        hidden = (
            hidden + self.sink * (torch.arange(hidden.shape[1]) == 0)[:, None] * torch.eye(hidden.shape[2])[0]
        )
        for block in self.blocks:
            hidden = self._run(block, hidden)
        return self.norm(hidden)

    def _run(self, block: nn.Module, hidden: Tensor) -> Tensor:
        if not self.recompute:
            return block(hidden)
        return checkpoint(block, hidden, use_reentrant=self.recompute == "reentrant")


SITES = ["layer.0", "layer.1", "layer.2", "layer.3", "output"]


def token_ids(sequences: int, length: int, seed: int = 0) -> Tensor:
    """Random tokens; 0, 1 and 2 are left for padding and special ones."""
    return torch.randint(3, 64, (sequences, length), generator=torch.Generator().manual_seed(seed))


class Letters:
    """A tokenizer: a token a letter, 1 before a text and 2 after it."""

    all_special_ids = [0, 1, 2]  # noqa: RUF012
    pad_token_id = 0

    def __call__(self, text: str, *, add_special_tokens: bool, verbose: bool) -> dict[str, list[int]]:
        ids = [3 + ord(letter) % 61 for letter in text]
        return {"input_ids": [1, *ids, 2] if add_special_tokens else ids}
