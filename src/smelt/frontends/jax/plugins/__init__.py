"""Lowerings, one module for each family of primitives."""

from __future__ import annotations

MODULES = (
    "arithmetic",
    "calls",
    "contraction",
    "movement",
    "reductions",
    "unary",
)
"""The modules that register lowerings, imported on the first trace."""
