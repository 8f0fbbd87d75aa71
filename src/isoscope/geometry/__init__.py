"""Definitions: every quantity as its formula states it, in float64, without optimisation.

Nothing here is meant to be fast. These functions are what the streamed readings are tested against,
and what to read to learn what a measure means.
"""
