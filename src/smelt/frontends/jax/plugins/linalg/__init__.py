"""Products and decompositions of matrices.

Convolutions belong into ``windows``.
"""
