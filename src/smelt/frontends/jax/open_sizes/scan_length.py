"""``jax.lax.scan`` with a symbolic ``length``, as in ``scan(f, init, xs, length=xs.shape[0])``.

JAX expects a number for ``length``, although scans themselves can run over a symbolic dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smelt.frontends.jax import compat
from smelt.frontends.jax.patching.library_functions import SCAN_LENGTH
from smelt.frontends.jax.patching.patches import Patch, register
from smelt.frontends.jax.patching.replacement import Function


def _length_of(original: Function) -> Function:
    """Return a replacement of ``_infer_scan_length`` that accepts a symbolic ``length``."""

    def length_of(xs_flat: Sequence[Any], xs_avals: Sequence[Any], length: Any) -> Any:
        """Return the number of scan steps, which may be symbolic."""
        if length is None or not compat.is_symbolic(length):
            return original(xs_flat, xs_avals, length)
        if not xs_flat:
            return length
        length_of_arrays = original(xs_flat, xs_avals, None)
        if length_of_arrays == length:
            return length_of_arrays
        return original(xs_flat, xs_avals, length)  # JAX raises its error for two lengths.

    return length_of


register(Patch(SCAN_LENGTH.target, _length_of, parameters=SCAN_LENGTH.parameters))
