"""Elements picked, moved and put by index: gather, scatter, slices, sorts, transposes, pads.

What computes new values from elements does not belong here.
"""
