"""Layers of libraries that bind one equation while smelt traces, and how those are lowered.

Optional: without one of these, passes recognize the arithmetic that the layer writes out.
"""
