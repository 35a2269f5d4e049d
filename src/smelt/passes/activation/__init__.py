"""Activations: passes that fuse the arithmetic of one elementwise function into one operator.

A pass whose rules combine several inputs of rows or channels does not belong here.
"""
