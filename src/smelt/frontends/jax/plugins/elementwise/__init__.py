"""Primitives that compute each element by itself: tables where they differ by a name.

What looks at neighbours or at an axis does not belong here.
"""
