"""Complex numbers as pairs of real ones, before anything is lowered.

ONNX operators take no complex numbers. ``without_complex`` traces a jaxpr once more with two real
arrays in the place of each complex one, so that no lowering ever meets them. ``with_pairs`` comes
before it, where inputs or outputs are complex.
"""

from __future__ import annotations

from smelt.frontends.jax.complex_numbers.conversion import without_complex
from smelt.frontends.jax.complex_numbers.interface import with_pairs
from smelt.frontends.jax.complex_numbers.parts import is_complex

__all__ = ["is_complex", "with_pairs", "without_complex"]
