"""CharacterBERT (El Boukkouri et al. 2020): BERT, with words made of their characters by a CNN.

Names as in github.com/helboukkouri/character-bert at ed7c5262 (`character_cnn.py`) and 1ba9fedc
(`character_bert.py`); the hub's have `character_bert.` before them. All but the CNN is transformers' own. Its
input is [b, t, 50]: the characters of t words, as data/words.py spells them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertModel

from isoscope.models.arch.configs import CharacterBertConfig
from isoscope.models.arch.highway import Highway

FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))  # (characters wide, how many)
CHARACTERS = 263  # 256 bytes, six marks, and 0 for what is no word at all
CHARACTER_WIDTH, HIGHWAYS = 16, 2


class CharacterCNN(nn.Module):
    """From the characters [b, t, m] of t words to a vector of each, [b, t, d].

    Characters are embedded, convolved with filters of one to seven characters, of which the largest over
    the word is kept and rectified; then two highway layers and a projection.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        filters = sum(number for _, number in FILTERS)
        self._char_embedding_weights = nn.Parameter(torch.zeros(CHARACTERS, CHARACTER_WIDTH))
        for place, (wide, number) in enumerate(FILTERS):
            self.add_module(f"char_conv_{place}", nn.Conv1d(CHARACTER_WIDTH, number, wide))
        self._highways = Highway(filters, HIGHWAYS)
        self._projection = nn.Linear(filters, width)

    def forward(self, characters: Tensor) -> Tensor:
        """The vectors of the words."""
        embedded = functional.embedding(characters.flatten(0, 1), self._char_embedding_weights).mT
        found = [self.get_submodule(f"char_conv_{place}")(embedded) for place in range(len(FILTERS))]
        largest = torch.cat([each.amax(-1) for each in found], dim=-1)
        words: Tensor = self._projection(self._highways(functional.relu(largest)))
        return words.reshape(*characters.shape[:2], -1)


class CharacterBert(BertModel):
    """The encoder: what `isoscope measure` runs."""

    config_class = CharacterBertConfig
    base_model_prefix = "character_bert"
    reads_words = True  # so that text is spelled for it

    def __init__(self, config: CharacterBertConfig) -> None:
        super().__init__(config)  # type: ignore[no-untyped-call]
        self.embeddings.word_embeddings = CharacterCNN(config.hidden_size)  # type: ignore[assignment]
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Any:
        """BERT's output for words given as characters, [b, t, m]."""
        words = self.embeddings.word_embeddings(input_ids)
        return super().forward(inputs_embeds=words, attention_mask=attention_mask)

    def _init_weights(self, module: nn.Module) -> None:
        """As in BERT; characters too, where a file has none."""
        super()._init_weights(module)  # type: ignore[no-untyped-call]
        if isinstance(module, CharacterCNN):
            nn.init.normal_(module._char_embedding_weights, std=self.config.initializer_range)
