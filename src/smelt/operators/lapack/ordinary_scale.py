"""Matrices brought to an ordinary scale by a power of two, which rounds nothing.

``geev`` scales very large and very small matrices by itself, and that of OpenBLAS 0.3.29 and
0.3.30, which SciPy's wheels have, gives their eigenvalues without scaling them back. So it is
given none of them.
"""

from __future__ import annotations

import numpy as np

ORDINARY_EXPONENTS = {4: 36, 8: 400}
"""Largest exponent of two, and its negative the least, of the largest element of a matrix that
``geev`` leaves as it is, by the size of an element in bytes."""


def ordinary_scale(*parts: np.ndarray) -> tuple[int, tuple[np.ndarray, ...]]:
    """An exponent, and finite real ``parts`` of a matrix over two to its power.

    It is 0 for parts of ordinary scale, which are then given back.
    """
    bound = ORDINARY_EXPONENTS[parts[0].dtype.itemsize]
    exponent = int(np.frexp(max(np.abs(part).max(initial=0) for part in parts))[1])
    shift = exponent - max(-bound, min(bound, exponent))
    return shift, tuple(np.ldexp(part, -shift) for part in parts) if shift else parts
