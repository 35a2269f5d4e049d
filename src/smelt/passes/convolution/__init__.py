"""Convolutions: what stands around one becomes its weight, bias, padding or dilation.

What reads and changes its parameters stands here. Passes that only move data do not.
"""
