"""Inference of shapes and types, sound for symbolic dims: shape rules, and what they read."""
