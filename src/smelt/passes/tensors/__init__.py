"""Arrangements of data: stacks, interleavings, one-hot vectors, index ranges, ranks.

Transposes that meet belong into ``layout``.
"""
