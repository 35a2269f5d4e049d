"""Lowerings, one module for each family of primitives."""

from __future__ import annotations

MODULES = (
    "arithmetic",
    "bitcast",
    "bits",
    "calls",
    "contraction",
    "control_flow",
    "conversion",
    "convolution",
    "creation",
    "cumulative",
    "decompositions",
    "dynamic_slicing",
    "gather",
    "generic_reduce",
    "linalg",
    "movement",
    "padding",
    "pooling",
    "random",
    "ragged",
    "reduce_window",
    "reductions",
    "scaled",
    "scatter",
    "sharding",
    "sorting",
    "special",
    "total_order",
    "unary",
    "window_selection",
)
"""The modules that register lowerings, imported on the first trace."""
