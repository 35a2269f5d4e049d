"""Primitives that compute each element by itself; tables where they differ only by a name.

Primitives that read neighbors or a whole axis do not belong here.
"""
