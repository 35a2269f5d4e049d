"""Normalizations: fuse the arithmetic of mean, variance and scale into one operator.

Recognition of means and variances is here, too. Activations and softmax do not belong here.
"""
