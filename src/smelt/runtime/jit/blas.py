"""A table of BLAS and LAPACK function pointers, from MKL and OpenBLAS."""

from __future__ import annotations

import ctypes
import os
from functools import cache

from smelt.errors import SmeltError
from smelt.runtime.jit.blas_libraries import Library, installed
from smelt.runtime.jit.build import warn_once
from smelt.runtime.jit.variables import BLAS_CHOICE

BLAS = ("gemm", "trsm")
VALUES = "_values"
"""The end of the name of ``gesdd`` for singular values without vectors."""
LAPACK = ("potrf", "getrf", "geqrf", "orgqr", "syevd", "gesdd", "gesdd_values", "geev", "gees")
COMPLEX = (
    *("trsm", "potrf", "getrf", "heevd", "gesdd", "gesdd_values", "geev", "gees", "geqrf"),
    *("ungqr", "gemm"),
)
FUNCTIONS = (
    *(letter + name for name in (*BLAS, *LAPACK) for letter in "sd"),
    *(letter + name for name in COMPLEX for letter in "cz"),
)
"""The functions of the table, in order."""

OF_EITHER_SIGN = ("syevd", "heevd", "gesdd", "geev", "gees")
"""Functions whose vectors may have another sign in another library. JAX, SciPy and the kernels for
small matrices have the signs of OpenBLAS."""


@cache
def use_one_thread() -> None:
    """Make every function of the table compute on the calling thread only."""
    for library, functions in _loaded():
        if library.set_threads:
            functions[library.set_threads](1)


def library_names() -> str:
    """Return the names of the libraries of the table, such as ``MKL, OpenBLAS``."""
    return ", ".join(library.name for library, _ in _loaded())


@cache
def table() -> ctypes.Array[ctypes.c_void_p] | None:
    """Return the addresses of ``FUNCTIONS``; None if no package brings them."""
    if not _loaded():
        return None
    pointers = [_pointer(name) for name in FUNCTIONS]
    return (ctypes.c_void_p * len(pointers))(*pointers)


@cache
def _loaded() -> tuple[tuple[Library, ctypes.CDLL], ...]:
    """Return the libraries that load and have all ``FUNCTIONS``, the one to prefer first.

    ``$SMELT_BLAS`` may name the only one.
    """
    found, chosen = [], os.environ.get(BLAS_CHOICE, "").lower()
    for library in installed():
        if chosen not in ("", library.name.lower()):
            continue
        try:
            functions = library.loaded()
            for name in FUNCTIONS:
                functions[_symbol(library, name)]
        except (OSError, AttributeError, SmeltError) as error:
            warn_once(f"{library.name} is not used: {error}")
            continue
        found.append((library, functions))
    if chosen and not found:
        warn_once(f"{BLAS_CHOICE}={chosen} names no library of BLAS that can be used here")
    return tuple(found)


def _pointer(name: str) -> ctypes.c_void_p:
    """Return the address of the function ``name``."""
    libraries = _loaded()
    library, functions = libraries[-1 if name[1:] in OF_EITHER_SIGN else 0]
    return ctypes.cast(functions[_symbol(library, name)], ctypes.c_void_p)


def _symbol(library: Library, name: str) -> str:
    """Return the symbol of the function ``name``, such as ``sgemm``, in the library."""
    form = library.cblas if name[1:] in BLAS else library.lapack
    return form.format(name.removesuffix(VALUES))
