"""Complex numbers as pairs of real ones, before anything is lowered.

ONNX operators take no complex numbers. ``without_complex`` traces a jaxpr once more with two real
arrays in the place of each complex one, so that no lowering ever meets them.
"""

from __future__ import annotations

from smelt.frontends.jax.complex_numbers.conversion import without_complex

__all__ = ["without_complex"]
