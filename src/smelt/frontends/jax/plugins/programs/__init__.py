"""Equations with inner programs, or that create values: calls, loops, branches, random, sharding.

A primitive that reads elements of arrays does not belong here.
"""
