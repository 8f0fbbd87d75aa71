"""The settings of the architectures that no library has, by the names in their published config.json."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformers import BertConfig, PreTrainedConfig


class CharacterBertConfig(BertConfig):
    """BERT's settings; the vocabulary is that of the words predicted in training, never of the input."""

    model_type = "character_bert"
    mlm_vocab_size: int | None = None


class MantaConfig(PreTrainedConfig):
    """The settings of the authors' config, by its names."""

    model_type = "manta"
    attribute_map = {  # noqa: RUF012  transformers' own way to say it
        "hidden_size": "d_model",
        "num_attention_heads": "num_heads",
        "num_hidden_layers": "num_layers",
    }
    vocab_size: int = 384
    byte_embedding_dim: int = 64
    frontier_predictor_num_layers: int = 1
    frontier_predictor_num_attention_heads: int = 8
    frontier_predictor_attention_window: int = 16
    pooling_variance_regularization: float = 1e-6
    pooling_kernel_size: Any = 3
    pooling_n_highway_layers: int = 0
    pooling_depthwise_convolution: bool = True
    pooling_mean_pool: bool = False
    max_length_inputs: int | None = None
    max_length_encoder_decoder: int = 256
    d_model: int = 512
    d_kv: int = 64
    d_ff: int = 2048
    num_layers: int = 6
    num_decoder_layers: int | None = None
    num_heads: int = 8
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    dropout_rate: float = 0.1
    layer_norm_epsilon: float = 1e-6
    initializer_factor: float = 1.0
    feed_forward_proj: str = "relu"
    is_encoder_decoder: bool = True
    pad_token_id: int | None = 0
    eos_token_id: int | None = 1
    tie_word_embeddings: bool = False


class VanConfig(PreTrainedConfig):
    """The settings of the hub's config.json, by its names."""

    model_type = "van"
    num_channels: int = 3
    patch_sizes: Sequence[int] = (7, 3, 3, 3)
    strides: Sequence[int] = (4, 2, 2, 2)
    hidden_sizes: Sequence[int] = (64, 128, 320, 512)
    depths: Sequence[int] = (3, 3, 12, 3)
    mlp_ratios: Sequence[int] = (8, 8, 4, 4)
    layer_norm_eps: float = 1e-6
    layer_scale_init_value: float = 1e-2


class CrystalCoderConfig(PreTrainedConfig):
    """The settings of the published config.json, by its names."""

    model_type = "crystalcoder"
    attribute_map = {  # noqa: RUF012  transformers' own way to say it
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }
    vocab_size: int = 32032
    n_positions: int = 2048
    n_embd: int = 4096
    n_layer: int = 32
    n_head: int = 32
    n_inner: int | None = None
    activation_function: str = "swiglu"
    layer_norm_epsilon: float = 1e-5
    initializer_range: float = 0.02
    scale_attn_weights: bool = True
    position_embedding_type: str = "rotary"
    rotary_dim: int | None = None
    mup_width_scale: float = 1.0
    mup_embeddings_scale: float = 1.0
    mup_output_alpha: float = 1.0
    mup_scale_qk_dot_by_d: bool = False
    bos_token_id: int | None = 1
    eos_token_id: int | None = 2
