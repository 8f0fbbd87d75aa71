"""MANTa-LM (Godey et al. 2022): a T5 over blocks of bytes that it learns to form; the decoder reads bytes.

Parameter names and config as in `models/manta/` of github.com/NathanGodey/transformers at 108c43a3 (config
26f026f7; pull request 19463 of transformers). An earlier state, 0193a9f8, has other names for the same
weights; `RENAMED` says which. Which of the two the hub's files (almanach/manta-lm-base) have is not known.
The authors' code takes the largest number of blocks of a batch for all; fed one sequence at a time, as
isoscope does, no batch changes a result.
"""

from __future__ import annotations

from torch import Tensor, nn
from transformers import PreTrainedModel, T5Config
from transformers.modeling_outputs import Seq2SeqModelOutput
from transformers.models.t5.modeling_t5 import T5Stack

from isoscope.models.arch.configs import MantaConfig
from isoscope.models.arch.manta.frontiers import FrontierPredictor
from isoscope.models.arch.manta.pooling import BlockPooling

RENAMED = {
    r"^byte_embeddings\.": "encoder.byte_embeddings.",
    r"^frontier_predictor\.": "encoder.frontier_predictor.",
    r"^pooler\.": "encoder.pooler.",
    r"^encoder_decoder\.encoder\.": "encoder.t5_encoder.",
    r"^encoder_decoder\.decoder\.": "decoder.",
    r"^encoder_decoder\.shared\.": "decoder_embeddings.",
}
_OF_T5 = (
    "d_model", "d_kv", "d_ff", "num_heads", "relative_attention_num_buckets", "dropout_rate",
    "relative_attention_max_distance", "layer_norm_epsilon", "feed_forward_proj", "pad_token_id",
    "eos_token_id",
)  # fmt: skip


class MantaEncoder(nn.Module):
    """Bytes, where they are cut, the vectors of their blocks, and T5's encoder over these."""

    def __init__(self, config: MantaConfig) -> None:
        super().__init__()
        self.byte_embeddings = nn.Embedding(config.vocab_size, config.byte_embedding_dim)
        self.frontier_predictor = FrontierPredictor(config)
        self.pooler = BlockPooling(config)
        self.t5_encoder = T5Stack(_t5(config, config.num_layers, decoder=False))
        self.t5_encoder.embed_tokens = None  # type: ignore[assignment]  # it is given vectors

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The states [b, B, d] of the blocks of bytes [b, s]."""
        embedded = self.byte_embeddings(input_ids)
        blocks = self.pooler(self.frontier_predictor(embedded, attention_mask), embedded)
        states: Tensor = self.t5_encoder(inputs_embeds=blocks).last_hidden_state
        return states


class Manta(PreTrainedModel):
    """Encoder and decoder, as MANTa-LM was trained: the decoder is fed bytes as they are."""

    config_class = MantaConfig
    base_model_prefix = "transformer"
    one_at_a_time = True  # how many blocks there are depends on the text
    _supports_sdpa = True
    _tied_weights_keys = {"decoder.embed_tokens.weight": "decoder_embeddings.weight"}  # noqa: RUF012
    _keys_to_ignore_on_load_unexpected = [  # noqa: RUF012
        r"^lm_head\.",
        r"position_ids$",
        r"t5_encoder\.embed_tokens\.weight$",
        r"EncDecAttention\.relative_attention_bias\.weight$",
    ]

    def __init__(self, config: MantaConfig) -> None:
        super().__init__(config)
        self.encoder = MantaEncoder(config)
        self.decoder_embeddings = nn.Embedding(config.vocab_size, config.d_model)
        layers = config.num_decoder_layers or config.num_layers
        self.decoder = T5Stack(_t5(config, layers, decoder=True))
        self.decoder.embed_tokens = self.decoder_embeddings
        self.post_init()  # type: ignore[no-untyped-call]

    def get_input_embeddings(self) -> nn.Module:
        """The table that bytes enter by."""
        return self.encoder.byte_embeddings

    def get_encoder(self, modality: str | None = None) -> nn.Module:
        """What reads the text."""
        return self.encoder

    def get_decoder(self) -> nn.Module:
        """What goes on with it, byte by byte."""
        return self.decoder

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
    ) -> Seq2SeqModelOutput:
        """The states of the encoder's blocks, and those of the decoder's bytes where it is fed any."""
        heard = self.encoder(input_ids, attention_mask)
        if decoder_input_ids is None:
            return Seq2SeqModelOutput(last_hidden_state=heard, encoder_last_hidden_state=heard)
        said = self.decoder(input_ids=decoder_input_ids, encoder_hidden_states=heard, use_cache=False)
        return Seq2SeqModelOutput(last_hidden_state=said.last_hidden_state, encoder_last_hidden_state=heard)


def _t5(config: MantaConfig, layers: int, *, decoder: bool) -> T5Config:
    """T5's settings for one of the two stacks."""
    same = {name: getattr(config, name) for name in _OF_T5}
    found = T5Config(
        **same,
        vocab_size=config.vocab_size,
        num_layers=layers,
        is_decoder=decoder,
        is_encoder_decoder=False,
        use_cache=False,
    )
    found._attn_implementation = config._attn_implementation
    return found
