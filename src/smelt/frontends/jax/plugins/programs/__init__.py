"""Lowerings of calls, loops, branches, array creation, random bits and sharding.

Primitives that compute from the elements of an array belong into the other folders.
"""
