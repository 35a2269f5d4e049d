"""Reductions and cumulative operators over whole axes.

Windows belong into ``windows``.
"""
