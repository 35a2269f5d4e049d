"""The keys of cached code, which change with everything that the code depends on."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from pathlib import Path

import numpy as np

from smelt.runtime.jit.blas_libraries import installed
from smelt.runtime.jit.toolchain import this_toolchain

SUFFIXES = (".py", ".c", ".h")


def key_here(*texts: str) -> str:
    """Return the cache key of code that was compiled from ``texts`` on this machine.

    The key depends on the texts, the C compiler, the CPU, this package, and the versions of Python,
    NumPy and BLAS. Raises UsageError E661 without a C compiler.
    """
    where = str([each.paths for each in installed()])
    return this_toolchain().key(*texts, sys.version, np.__version__, where, package_digest())


@cache
def package_digest() -> str:
    """Return a hash of the sizes and times of the package's source files."""
    hashed = hashlib.sha256()
    for folder, _, names in sorted(os.walk(Path(__file__).parents[2])):
        for name in sorted(names):
            if name.endswith(SUFFIXES):
                status = Path(folder, name).stat()
                hashed.update(f"{folder}/{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return hashed.hexdigest()
