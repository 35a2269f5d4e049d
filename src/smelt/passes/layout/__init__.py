"""Transposes and the order of dims.

Reshapes that move no element belong into ``simplify``.
"""
