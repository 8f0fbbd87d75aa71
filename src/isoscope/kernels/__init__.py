"""Fast versions of `geometry`. Each function names its naive twin and is tested against it."""
