"""Equations that hold other equations or make values: calls, loops, branches, randomness, sharding.

A primitive that reads elements of arrays does not belong here.
"""
