"""Where there is no GPU, Triton's interpreter runs the kernel on the CPU.

Triton decides between compiling and interpreting when a function is decorated, and torch has imported it by
now: so its own functions written in Triton (sum, max, …) and ours are decorated once more.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.util import find_spec

import torch

if find_spec("triton") and not torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1":
    os.environ["TRITON_INTERPRET"] = "1"
    import triton.language

    standard = importlib.reload(triton.language.standard)
    for name in triton.language.__all__:
        if getattr(getattr(triton.language, name), "__module__", None) == standard.__name__:
            setattr(triton.language, name, getattr(standard, name))
    for module in ("marks", "terms", "fold", "tiles", "triton"):  # in the order of their imports
        name = f"isoscope.kernels.attention.{module}"
        if name in sys.modules:
            importlib.reload(sys.modules[name])
        importlib.import_module(name)
