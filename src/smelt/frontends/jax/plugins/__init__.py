"""Lowerings of JAX primitives: one folder per subject, one module per family of primitives.

Importing a module registers its lowerings.
"""
