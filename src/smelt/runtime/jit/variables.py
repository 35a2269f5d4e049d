"""Environment variables, besides ``CC``, that affect how programs run."""

from __future__ import annotations

CACHE = "SMELT_CACHE"
"""The folder of compiled libraries."""

BLAS_CHOICE = "SMELT_BLAS"
"""The only library of BLAS and LAPACK to use, ``mkl`` or ``openblas``."""

ENGINE = "SMELT_HOST_ENGINE"
"""The engine of the target ``host`` if no option names one."""
