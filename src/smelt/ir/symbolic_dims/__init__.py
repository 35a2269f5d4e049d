"""Symbolic dims: their texts, comparisons, constraints and solutions."""
