"""Fuse attention and softmax: products of queries, keys and values, with their masks, into
operators.

Recognition of masks is here, too. Products without a softmax belong into ``products``.
"""
