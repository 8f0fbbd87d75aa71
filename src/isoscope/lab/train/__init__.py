"""Train a small model reproducibly: experiments, checkpoints, probes."""
