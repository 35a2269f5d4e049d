"""Symbolic sizes in Python code that expects numbers: comparisons, arithmetic, JAX functions."""
