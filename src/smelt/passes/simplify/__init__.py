"""Passes that simplify arithmetic and shapes in models of every kind.

A pass that builds one particular operator, such as a normalization or an attention, belongs into
the folder of that subject.
"""
