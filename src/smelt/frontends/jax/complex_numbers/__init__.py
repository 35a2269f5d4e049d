"""Complex numbers as pairs of real numbers, before anything is lowered.

ONNX operators take no complex numbers. ``without_complex`` traces a jaxpr again with two real
arrays in place of each complex array, so that no lowering has to handle complex operands. Where
inputs or outputs are complex, ``with_pairs`` runs first.
"""

from __future__ import annotations

from smelt.frontends.jax.complex_numbers.conversion import Whole, without_complex
from smelt.frontends.jax.complex_numbers.interface import with_pairs
from smelt.frontends.jax.complex_numbers.parts import is_complex

__all__ = ["Whole", "is_complex", "with_pairs", "without_complex"]
