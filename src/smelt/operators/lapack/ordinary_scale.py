"""Scales matrices by a power of two to an ordinary magnitude, which rounds nothing.

``geev`` scales very large and very small matrices itself, and OpenBLAS 0.3.29 and 0.3.30, in
SciPy's wheels, return their eigenvalues without scaling them back. So it is never given such
matrices.
"""

from __future__ import annotations

import numpy as np

ORDINARY_EXPONENTS = {4: 36, 8: 400}
"""Largest exponent of two, and its negative the least, of the largest element of a matrix that
``geev`` does not scale, by element size in bytes."""


def ordinary_scale(*parts: np.ndarray) -> tuple[int, tuple[np.ndarray, ...]]:
    """Return an exponent, and the finite real ``parts`` of a matrix divided by two to that power.

    The exponent is 0 for parts of ordinary scale, which are returned unchanged.
    """
    bound = ORDINARY_EXPONENTS[parts[0].dtype.itemsize]
    exponent = int(np.frexp(max(np.abs(part).max(initial=0) for part in parts))[1])
    shift = exponent - max(-bound, min(bound, exponent))
    if shift == 0:
        return 0, parts
    return shift, tuple(np.ldexp(part, -shift) for part in parts)
