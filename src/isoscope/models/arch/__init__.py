"""Architectures of the papers that no library provides: CharacterBERT, MANTa-LM, VAN, CrystalCoder.

Written from their descriptions, with names and config of the authors' public code, so that published files
load; with --trust-remote-code the authors' own code runs instead.
"""

from __future__ import annotations

KINDS = ("character_bert", "manta", "van", "crystalcoder")  # `model_type` in the published config.json


def know_configs() -> None:
    """Let transformers read the config.json of these kinds; quick, and asked for again it changes nothing."""
    from transformers import AutoConfig

    from isoscope.models.arch import configs

    own = (configs.CharacterBertConfig, configs.MantaConfig, configs.VanConfig, configs.CrystalCoderConfig)
    for config in own:
        AutoConfig.register(config.model_type, config, exist_ok=True)


def know_models() -> None:
    """Let transformers load models of these kinds."""
    from transformers import AutoModel

    from isoscope.models.arch.character_bert import CharacterBert
    from isoscope.models.arch.crystalcoder import CrystalCoder
    from isoscope.models.arch.manta.model import Manta
    from isoscope.models.arch.van import Van

    know_configs()
    for model in (CharacterBert, Manta, Van, CrystalCoder):
        AutoModel.register(model.config_class, model, exist_ok=True)


def renamed(kind: str) -> dict[str, str] | None:
    """Patterns of parameter names in published files of this kind, with their names here; None for none."""
    if kind == "van":
        from isoscope.models.arch.van import RENAMED as OF_VAN

        return dict(OF_VAN)
    if kind == "manta":
        from isoscope.models.arch.manta.model import RENAMED as OF_MANTA

        return dict(OF_MANTA)
    return None
