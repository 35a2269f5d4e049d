"""Activations: the arithmetic of one elementwise function becomes one operator.

A pass that needs more than one input with rows or channels does not belong here.
"""
