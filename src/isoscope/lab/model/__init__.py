"""The small models of the lab: a Transformer and a CNN."""
