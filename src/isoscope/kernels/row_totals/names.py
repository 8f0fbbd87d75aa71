"""The sums of attention rows by name, and the score of a sequence without any row."""

from __future__ import annotations

import torch

TOTALS = (
    "count", "entropy", "log_visible", "several", "normalised", "largest", "effective", "variance",
    "distance", "sunk", "sink", "chance", "unseeing", "not_finite",
)  # fmt: skip
SPLIT = ("drift", "rest", "split", "chance", "beside", "beside_without", "beside_count")
LOWEST = torch.finfo(torch.float64).min
