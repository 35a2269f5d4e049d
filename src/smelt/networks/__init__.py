"""Tensor networks: contractions compiled from equations, their trees, and their slices."""
