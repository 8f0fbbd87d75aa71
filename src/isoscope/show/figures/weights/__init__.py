"""Figures of weights: heads, vocabulary matrices, the final norm."""
