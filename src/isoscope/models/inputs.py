"""From an address and a model to the data the model takes: text, images or sound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from isoscope.data.alphabet import ALPHABETS, alphabet
from isoscope.data.audio import Sounds, Speak, sounds
from isoscope.data.image import Images, images
from isoscope.data.text import BATCH_SIZE, LIMIT, MAX_LENGTH, Text, in_blocks, text
from isoscope.data.words import Words, spelled
from isoscope.errors import IsoscopeError, refuse_sizes, unknown_name
from isoscope.models.source import Model
from isoscope.models.tap import at_rest

MOST_SAID = 24  # tokens a decoder of speech goes on for


def open_data(
    address: str,
    model: Model,
    *,
    limit: int | None = LIMIT,
    max_length: int | None = None,
    batch_size: int = BATCH_SIZE,
    pack: bool = True,
    special: bool = False,
    first: bool = False,
    tokens: str = "auto",
    seed: int = 0,
) -> Text | Images | Sounds:
    """The data at `address` as this model takes it; ``embedded`` has some for every kind of model.

    Text: a file of text or JSONL, at most `max_length` tokens a sequence (else the model's limit, at most
    512). Images: a folder of pictures. Sound: a folder of recordings. For all: a column of a dataset,
    ``id:split:column``. `tokens` is ``auto`` for the model's tokenizer, or ``bytes`` or ``characters``.
    `special` counts special, class and register tokens, `first` counts position 0 of a text.
    """
    refuse_sizes(limit, max_length, batch_size)
    if tokens not in ("auto", *ALPHABETS):
        raise unknown_name("kind of tokens", tokens, ("auto", *ALPHABETS))
    takes = "words" if getattr(model.module, "reads_words", False) else model.takes
    if tokens != "auto" and takes != "text":
        raise IsoscopeError(f"'{model.name}' takes {takes}, which has no {tokens}; leave out --tokens.")
    shared: dict[str, Any] = {"limit": limit, "batch_size": batch_size, "seed": seed}
    if model.takes == "images":
        patch, process = patch_size(model.module), _needed(model, model.processor, "image processor")
        return images(address, process, patch=patch, special=special, **shared)
    if model.takes == "sound":
        extract = _needed(model, model.processor, "feature extractor")
        return sounds(
            address,
            extract,
            rate=extract.sampling_rate,
            shortest=shortest_sound(model.module),
            padded=getattr(model.module, "main_input_name", "") == "input_features",
            speak=speaker(model.module),
            **shared,
        )
    longest = model.longest
    if max_length and longest and max_length > longest:
        said = f"max_length {max_length} is more than the {longest} tokens '{model.name}' takes."
        raise IsoscopeError(said)
    words = Words() if takes == "words" else None
    alone = bool(getattr(model.module, "one_at_a_time", False))
    if tokens == "auto":
        tokenizer = words or _needed(model, model.tokenizer, "tokenizer")
    else:
        tokenizer = alphabet(tokens, known_tokens(model.module))
    found = text(
        address,
        tokenizer,
        max_length=max_length or min(longest or MAX_LENGTH, MAX_LENGTH),
        pack=pack,
        special=special,
        first=first,
        start=decoder_start(model.module),
        even=words is None and _sees_padding(model.module),
        **shared | ({"batch_size": 1} if alone else {}),
    )
    if words is not None:
        return spelled(found, words)
    return in_blocks(found) if alone else found


def _sees_padding(module: nn.Module) -> bool:
    """Whether positions are mixed by a convolution, which no mask keeps from padding (CANINE)."""
    return any(isinstance(part, nn.Conv1d) and part.kernel_size[0] > 1 for part in module.modules())


def _needed(model: Model, part: Any, what: str) -> Any:
    if part is None:
        bare = ", or --tokens bytes or characters" if what == "tokenizer" else ""
        raise IsoscopeError(
            f"the model '{model.name}' comes without {what}, so {model.takes} cannot be read for it; "
            f"give batches of tensors, or a folder that holds the {what}'s files{bare}."
        )
    return part


def known_tokens(module: nn.Module) -> int | None:
    """How many token ids the model has vectors for; None for one that takes any, as CANINE does."""
    try:
        table = module.get_input_embeddings()  # type: ignore[operator]
    except (AttributeError, NotImplementedError):
        table = None
    if isinstance(table, nn.Embedding):
        return table.num_embeddings
    said = getattr(getattr(module, "config", None), "vocab_size", None)
    return said if isinstance(said, int) else None


def patch_size(module: nn.Module) -> int | None:
    """The side of a patch: the stride of the first convolution."""
    first = next((part for part in module.modules() if isinstance(part, nn.Conv2d)), None)
    if first is None or first.stride[0] == 1 or first.stride[0] != first.stride[1]:
        return None
    return int(first.stride[0])


def shortest_sound(module: nn.Module) -> int:
    """The fewest samples that make a frame: the reach of the convolutions over the samples."""
    config = getattr(module, "config", None)
    kernels, strides = getattr(config, "conv_kernel", None), getattr(config, "conv_stride", None)
    reach = 1
    for kernel, stride in zip(reversed(kernels or ()), reversed(strides or ()), strict=True):
        reach = (reach - 1) * stride + kernel
    return reach


def speaker(module: nn.Module) -> Speak | None:
    """What a model of speech says to its features: at each place the likeliest token, until it ends.

    The output vocabulary is taken to be the input's, as in Whisper. The start token and what follows
    the end do not count.
    """
    start = decoder_start(module)
    if start is None:
        return None
    talker: Any = module
    end = getattr(talker.config, "eos_token_id", None)

    def speak(features: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        weights = talker.get_input_embeddings().weight
        with at_rest(module):
            heard = talker.get_encoder()(*(x.to(weights.device, weights.dtype) for x in features.values()))[0]
            said = torch.full((len(heard), 1), start, device=heard.device)
            for _ in range(MOST_SAID):
                state = talker.get_decoder()(input_ids=said, encoder_hidden_states=heard, use_cache=False)[0]
                said = torch.cat([said, (state[:, -1:] @ weights.T).argmax(-1)], dim=1)
        ended = said.eq(-1 if end is None else end).cumsum(1).roll(1, dims=1) > 0
        ended[:, 0] = True  # the start token
        return said, ~ended.cpu()

    return speak


def decoder_start(module: nn.Module) -> int | None:
    """The token a decoder begins with; None for a model without one."""
    config = getattr(module, "config", None)
    if not getattr(config, "is_encoder_decoder", False):
        return None
    names = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
    return next((token for name in names if isinstance(token := getattr(config, name, None), int)), 0)
