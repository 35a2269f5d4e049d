"""Lowerings of elementwise primitives; those that differ only by an operator name are a table.

Primitives that read neighbors or a whole axis do not belong here.
"""
