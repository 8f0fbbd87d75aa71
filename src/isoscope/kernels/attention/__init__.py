"""Attention rows without the attention matrix: chunked torch, or one fused Triton pass."""
