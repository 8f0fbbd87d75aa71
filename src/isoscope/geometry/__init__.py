"""Definitions: every quantity as its formula says it, in float64, with no thought of speed.

Nothing here is meant to be fast. These functions are what the streamed readings are tested against,
and what to read to learn what a measure means.
"""
