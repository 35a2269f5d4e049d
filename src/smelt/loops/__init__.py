"""A language of loops: an algorithm says what is computed, a schedule says how.

``lower`` makes a nest of statements of both, ``print_nest`` writes the nest as C, and ``run``
computes it on NumPy arrays.
"""
