"""Facts about a model: weights, depth, symbolic dims, work, quantization, functions."""

from smelt.inspection.facts import Facts, inspect

__all__ = ["Facts", "inspect"]
