"""A table of BLAS and LAPACK function pointers from the OpenBLAS of ``scipy-openblas32``."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

SYMBOLS = {"gemm": "scipy_cblas_{}", "trsm": "scipy_cblas_{}"}
"""Name of a function without its letter of the element type, to its symbol in the library."""

LAPACK = ("potrf", "getrf", "geqrf", "orgqr", "syevd", "gesdd", "geev", "gees")
COMPLEX = ("trsm", "potrf", "getrf", "heevd", "gesdd", "geev", "gees", "geqrf", "ungqr", "gemm")
LAPACK_SYMBOL = "scipy_{}_"
FUNCTIONS = (
    *(letter + name for name in (*SYMBOLS, *LAPACK) for letter in "sd"),
    *(letter + name for name in COMPLEX for letter in "cz"),
)
"""The functions of the table, in order."""

SET_THREADS = "scipy_openblas_set_num_threads"


@cache
def use_one_thread() -> None:
    """Make every function of the table compute on the calling thread only."""
    for path in _libraries():
        ctypes.CDLL(str(path))[SET_THREADS](1)


def _libraries() -> list[Path]:
    """Return the paths of OpenBLAS; empty if the package is not installed."""
    try:
        import scipy_openblas32
    except ImportError:
        return []
    return sorted(Path(scipy_openblas32.get_lib_dir()).glob("*scipy_openblas.*"))


@cache
def table() -> ctypes.Array[ctypes.c_void_p] | None:
    """Return the addresses of ``FUNCTIONS``; None if the package or a function is missing."""
    for path in _libraries():
        try:
            loaded = ctypes.CDLL(str(path))
            pointers = [ctypes.cast(loaded[_symbol(name)], ctypes.c_void_p) for name in FUNCTIONS]
        except (OSError, AttributeError):
            continue
        return (ctypes.c_void_p * len(pointers))(*pointers)
    return None


def _symbol(name: str) -> str:
    """Return the symbol of the function ``name``, such as ``sgemm``, in the library."""
    return SYMBOLS.get(name[1:], LAPACK_SYMBOL).format(name)
