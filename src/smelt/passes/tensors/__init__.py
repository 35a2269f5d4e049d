"""Arrangements of data: stacks, interleavings, one-hot vectors, index ranges, ranks.

Merging of Transposes belongs into ``layout``.
"""
