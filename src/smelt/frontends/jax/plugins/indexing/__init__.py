"""Lowerings of primitives that move elements: gather, scatter, slices, sorts, transposes, pads.

Primitives that compute new values from elements do not belong here.
"""
