"""Layers of libraries that are quicker to trace as one equation, and how those are lowered.

Optional: each stands in for a function of a library that takes more than a seventh of a conversion
(measured one by one), and is left out where that library has changed.
"""
