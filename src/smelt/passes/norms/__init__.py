"""Normalizations: the arithmetic of mean, variance and scale becomes one operator.

What recognizes statistics stands here, too. Activations and softmax do not belong here.
"""
