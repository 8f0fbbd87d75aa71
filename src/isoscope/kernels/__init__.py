"""The same as `geometry`, fast. Each function names its naive twin and is tested against it."""
