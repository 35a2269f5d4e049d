"""Reductions and cumulative operators of whole axes.

Windows belong into ``windows``.
"""
