"""Lowerings of sliding windows: convolutions, pools, reductions over windows and their monoids.

Reductions of whole axes belong into ``reductions``.
"""
