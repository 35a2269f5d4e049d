"""BLAS as a table of function pointers, from the OpenBLAS that ``scipy-openblas32`` brings."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

PREFIX = "scipy_cblas_"
FUNCTIONS = ("sgemm", "dgemm")
"""What the table holds, in order."""


@cache
def table() -> ctypes.Array[ctypes.c_void_p] | None:
    """Addresses of ``FUNCTIONS``; None where the package is not installed or lacks one."""
    try:
        import scipy_openblas32
    except ImportError:
        return None
    folder = Path(scipy_openblas32.get_lib_dir())
    for path in sorted(folder.glob("*scipy_openblas.*")):
        try:
            loaded = ctypes.CDLL(str(path))
            found = [ctypes.cast(loaded[PREFIX + name], ctypes.c_void_p) for name in FUNCTIONS]
        except (OSError, AttributeError):
            continue
        return (ctypes.c_void_p * len(found))(*found)
    return None
