"""Lowerings: a folder a subject, a module a family of primitives."""

from __future__ import annotations

from collections.abc import Mapping

ROOMS: Mapping[str, tuple[str, ...]] = {
    "elementwise": (
        "arithmetic",
        "bitcast",
        "bits",
        "conversion",
        "operators",
        "total_order",
        "unary",
    ),
    "indexing": (
        "dynamic_slicing",
        "gather",
        "movement",
        "padding",
        "scatter",
        "sorting",
    ),
    "layers": (
        "attention",
        "batch_norm",
        "equinox_attention",
        "group_norm",
        "layer_norm",
        "linen_norms",
        "linen_parameters",
    ),
    "linalg": (
        "contraction",
        "decompositions",
        "linalg",
        "ragged",
        "scaled",
    ),
    "programs": (
        "calls",
        "control_flow",
        "creation",
        "random",
        "sharding",
    ),
    "reductions": (
        "cumulative",
        "generic_reduce",
        "reductions",
    ),
    "windows": (
        "convolution",
        "pooling",
        "reduce_window",
        "window_selection",
    ),
}
"""The modules that register lowerings, by folder, imported on the first trace."""
