"""The libraries of BLAS and LAPACK that packages of this Python bring: MKL and OpenBLAS."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from smelt.runtime.jit.build import built
from smelt.runtime.jit.toolchain import cpu

INTEL = "GenuineIntel"
"""The vendor of the CPUs on which MKL was measured. It takes slower code on those of others."""

MKL_FILES = (
    re.compile(r"libmkl_intel_lp64\.so\.\d+"),
    re.compile(r"libmkl_sequential\.so\.\d+"),
    re.compile(r"libmkl_core\.so\.\d+"),
)
"""The files of the package ``mkl`` for C's ``int`` and for one thread. MKL's OpenMP is left alone:
beside that of PyTorch, its singular vectors were wrong."""


@dataclass(frozen=True)
class Library:
    """The files of a library of BLAS and LAPACK, and the forms of its symbols.

    ``cblas`` and ``lapack`` make the symbol of a function of BLAS and of LAPACK. ``set_threads`` is
    the function that sets the number of threads, empty for a library that has one thread.
    """

    name: str
    paths: tuple[Path, ...]
    cblas: str
    lapack: str
    set_threads: str

    def loaded(self) -> ctypes.CDLL:
        """Return the library; raises OSError if it doesn't load, and the errors of ``built``.

        Several files need each other's symbols. So an empty library that is linked with all of
        them is loaded: they find each other first, and the rest of the process doesn't find them.
        PyTorch, too, has symbols of MKL.
        """
        if len(self.paths) == 1:
            return ctypes.CDLL(str(self.paths[0]))
        folders = sorted({str(path.parent) for path in self.paths})
        search = [f"-Wl,-rpath,{folder}" for folder in folders]
        flags = ["-Wl,--no-as-needed", *search, *map(str, self.paths)]
        with built("", flags) as path:
            return ctypes.CDLL(str(path), mode=os.RTLD_LOCAL | os.RTLD_DEEPBIND)


@cache
def installed() -> tuple[Library, ...]:
    """Return the libraries of this Python's packages: MKL, then OpenBLAS."""
    return (*_mkl(sys.platform, cpu()), *_openblas())


def _mkl(platform: str, processor: str) -> tuple[Library, ...]:
    """Return MKL; empty without its package, and on other systems than Linux on Intel's CPUs."""
    if platform != "linux" or INTEL not in processor:
        return ()
    try:
        listed = files("mkl") or []
    except PackageNotFoundError:
        return ()
    found = [each for name in MKL_FILES for each in listed if name.fullmatch(each.name)]
    paths = tuple(Path(str(each.locate())).resolve() for each in found)
    if len(paths) < len(MKL_FILES) or not all(path.is_file() for path in paths):
        return ()
    return (Library("MKL", paths, "cblas_{}", "{}_", ""),)


def _openblas() -> tuple[Library, ...]:
    """Return OpenBLAS; empty if the package ``scipy-openblas32`` isn't installed."""
    try:
        import scipy_openblas32
    except ImportError:
        return ()
    paths = sorted(Path(scipy_openblas32.get_lib_dir()).glob("*scipy_openblas.*"))
    forms = ("scipy_cblas_{}", "scipy_{}_", "scipy_openblas_set_num_threads")
    return tuple(Library("OpenBLAS", (path,), *forms) for path in paths)
