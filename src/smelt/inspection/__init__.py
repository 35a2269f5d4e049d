"""What is in a model, as facts: weights, depth, symbolic dims, work, quantization, functions."""

from smelt.inspection.facts import Facts, inspect

__all__ = ["Facts", "inspect"]
