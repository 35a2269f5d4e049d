"""Attention and softmax: products of queries, keys and values, their masks, as operators.

What recognizes masks stands here. Products without a softmax belong into ``products``.
"""
