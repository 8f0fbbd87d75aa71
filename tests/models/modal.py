"""Tiny random models that take images or sound, or have a decoder, saved as a user has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
import transformers
from torch import nn

from tests.models.tiny import PAD, SEP, VOCABULARY, tokenizer

SIDE, PATCH, WIDTH, LAYERS = 32, 8, 16, 3
_VIT = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": SIDE,
    "patch_size": PATCH,
}
_SPEECH = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 40,
    "conv_dim": (8,) * 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
}
_T5 = {
    "vocab_size": VOCABULARY,
    "d_model": WIDTH,
    "d_kv": 8,
    "d_ff": 32,
    "num_layers": LAYERS,
    "num_heads": 2,
    "decoder_start_token_id": PAD,
    "pad_token_id": PAD,
    "eos_token_id": SEP,
}
Make = Callable[[], nn.Module]

IMAGES: dict[str, Make] = {
    "vit": lambda: transformers.ViTModel(transformers.ViTConfig(**_VIT)),
    "deit": lambda: transformers.DeiTModel(transformers.DeiTConfig(**_VIT)),
    "beit": lambda: transformers.BeitModel(transformers.BeitConfig(**_VIT)),
    "dinov2": lambda: transformers.Dinov2Model(transformers.Dinov2Config(**{**_VIT, "mlp_ratio": 2})),
    "dinov2_registers": lambda: transformers.Dinov2WithRegistersModel(
        transformers.Dinov2WithRegistersConfig(**{**_VIT, "mlp_ratio": 2}, num_register_tokens=4)
    ),
    "clip": lambda: transformers.CLIPVisionModel(transformers.CLIPVisionConfig(**_VIT)),
    "swin": lambda: transformers.SwinModel(
        transformers.SwinConfig(
            image_size=SIDE, patch_size=4, embed_dim=8, depths=[2, 2], num_heads=[2, 2], window_size=4
        )
    ),
    "segformer": lambda: transformers.SegformerModel(
        transformers.SegformerConfig(hidden_sizes=[8, 12, 16, 20], depths=[1, 2, 1, 2], decoder_hidden_size=8)
    ),
    "cvt": lambda: transformers.CvtModel(
        transformers.CvtConfig(embed_dim=[8, 12, 16], num_heads=[1, 2, 2], depth=[1, 2, 3])
    ),
    "convnext": lambda: transformers.ConvNextModel(
        transformers.ConvNextConfig(hidden_sizes=[8, 12, 16, 20], depths=[1, 1, 2, 1])
    ),
    "resnet": lambda: transformers.ResNetModel(
        transformers.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 12, 16, 20], depths=[1, 2, 1, 1], layer_type="basic"
        )
    ),
    "resnet_bottleneck": lambda: transformers.ResNetModel(
        transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 12, 16, 20], depths=[1, 2, 1, 1])
    ),
    "efficientnet": lambda: transformers.EfficientNetModel(
        transformers.EfficientNetConfig(
            image_size=SIDE, width_coefficient=0.25, depth_coefficient=0.5, hidden_dim=320
        )
    ),
}
SOUND: dict[str, Make] = {
    "wav2vec2": lambda: transformers.Wav2Vec2Model(transformers.Wav2Vec2Config(**_SPEECH)),
    "hubert": lambda: transformers.HubertModel(transformers.HubertConfig(**_SPEECH)),
    "whisper": lambda: transformers.WhisperModel(
        transformers.WhisperConfig(
            d_model=WIDTH, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, vocab_size=40, pad_token_id=0,
            bos_token_id=1, eos_token_id=2, decoder_start_token_id=3, max_source_positions=100,
        )
    ),
}  # fmt: skip
TEXT: dict[str, Make] = {
    "t5": lambda: transformers.T5Model(transformers.T5Config(**_T5)),
    "byt5": lambda: transformers.T5Model(
        transformers.T5Config(**{**_T5, "num_decoder_layers": 1, "feed_forward_proj": "gated-gelu"})
    ),
}
ALL = {**IMAGES, **SOUND, **TEXT}


def build(family: str) -> nn.Module:
    """A model of this family, the same every time, with batch statistics that are not trivial."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = ALL[family]().eval()
        for part in model.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.normal_(std=0.1)
                part.running_var.uniform_(0.5, 2)
    return model


def save(family: str, folder: Path) -> Path:
    """The model on disk, with what turns its data into tensors."""
    build(family).save_pretrained(folder)
    if family in IMAGES:
        transformers.ViTImageProcessorPil(size={"height": SIDE, "width": SIDE}).save_pretrained(folder)
    elif family == "whisper":
        transformers.WhisperFeatureExtractor(chunk_length=2).save_pretrained(folder)
    elif family in SOUND:
        transformers.Wav2Vec2FeatureExtractor().save_pretrained(folder)
    else:
        tokenizer("none").save_pretrained(folder)
    return folder
