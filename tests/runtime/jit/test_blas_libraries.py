"""Which library of BLAS and LAPACK compiled programs call."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from importlib.metadata import PackagePath
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import smelt
from smelt.runtime.jit import blas, blas_libraries, cache_key

INTEL = "vendor_id\t: GenuineIntel"
FILES = ("libmkl_intel_lp64.so.3", "libmkl_sequential.so.3", "libmkl_core.so.3")


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Return a function that installs a package ``mkl`` with some files, none of which is real."""

    def install(*names: str) -> None:
        def listed(package: str) -> list[PackagePath]:
            assert package == "mkl"
            paths = [PackagePath(name) for name in names]
            for path in paths:
                (tmp_path / path.name).touch()
                path.dist = type("Dist", (), {"locate_file": lambda _, name: tmp_path / name})()
            return paths

        monkeypatch.setattr(blas_libraries, "files", listed)

    return install


def test_mkl_comes_first_where_its_files_and_an_intel_cpu_are(package, tmp_path: Path) -> None:
    package("libmkl_rt.so.3", *reversed(FILES))
    (library,) = blas_libraries._mkl("linux", INTEL)
    assert [path.name for path in library.paths] == [*FILES]
    assert not blas_libraries._mkl("linux", "vendor_id\t: AuthenticAMD")
    assert not blas_libraries._mkl("darwin", INTEL)
    package(*FILES[1:])
    assert not blas_libraries._mkl("linux", INTEL)


def test_a_library_that_does_not_load_is_skipped_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = blas_libraries.Library("MKL", (tmp_path / "none.so",), "cblas_{}", "{}_", "")
    others = blas_libraries._openblas()
    monkeypatch.setattr(blas, "installed", lambda: (broken, *others))
    with pytest.warns(RuntimeWarning, match="MKL is not used: .*none.so"):
        found = blas._loaded.__wrapped__()
    assert [library for library, _ in found] == [*others]


def test_a_variable_names_the_only_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMELT_BLAS", "openblas")
    assert {library.name for library, _ in blas._loaded.__wrapped__()} <= {"OpenBLAS"}
    monkeypatch.setenv("SMELT_BLAS", "none")
    with pytest.warns(RuntimeWarning, match="SMELT_BLAS=none names no library"):
        assert not blas._loaded.__wrapped__()


def test_vectors_come_from_openblas() -> None:
    """Whose signs those of SciPy, JAX and the kernels for small matrices are."""
    libraries = blas._loaded()
    for name in ("dsyevd", "zgesdd", "dgesdd_values", "dpotrf", "dgemm"):
        place = -1 if name in ("dsyevd", "zgesdd") else 0
        if libraries:
            library, functions = libraries[place]
            symbol = blas._symbol(library, name)
            address = ctypes.cast(functions[symbol], ctypes.c_void_p).value
            assert blas.table()[blas.FUNCTIONS.index(name)] == address


def test_the_cache_key_names_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache_key.key_here("text")
    monkeypatch.setattr(cache_key, "installed", lambda: ())
    assert (cache_key.key_here("text") != before) == bool(blas_libraries.installed())


@pytest.mark.skipif(blas.table() is None, reason="no package with BLAS is installed")
def test_the_report_names_the_library() -> None:
    a = np.random.default_rng(0).standard_normal((80, 80))
    product = smelt.compile_einsum("ab,bc->ac", [a.shape] * 2, np.float64, engine="native")
    np.testing.assert_allclose(product(a, a)[0], a @ a)
    assert product.report["blas"] == blas.library_names()
    small = smelt.compile_einsum("ab,bc->ac", [(4, 4)] * 2, np.float64, engine="native")
    small(a[:4, :4], a[:4, :4])
    assert "blas" not in small.report


ALONE = """
import ctypes
from smelt.runtime.jit import blas
assert blas.table()
rest = ctypes.CDLL(None)
assert not hasattr(rest, "zgesdd_") and not hasattr(rest, "cblas_dgemm")
assert "iomp5" not in open("/proc/self/maps").read()
"""


@pytest.mark.skipif("MKL" not in blas.library_names(), reason="MKL is not used here")
def test_the_rest_of_the_process_does_not_find_symbols_of_mkl() -> None:
    subprocess.run([sys.executable, "-c", ALONE], check=True)


@pytest.mark.skipif(not find_spec("torch"), reason="PyTorch is not installed")
@pytest.mark.skipif("MKL" not in blas.library_names(), reason="MKL is not used here")
def test_mkl_is_right_beside_the_threads_of_pytorch() -> None:
    import torch

    torch.linalg.svd(torch.randn(300, 300, dtype=torch.float64))
    a = np.random.default_rng(0).standard_normal((50, 50))
    with jax.enable_x64(True):
        model = smelt.trace(jnp.linalg.svd, jax.ShapeDtypeStruct(a.shape, a.dtype))
    u, s, v = smelt.compile(model, target="host", engine="native")(a)
    np.testing.assert_allclose(u * s @ v, a, atol=1e-12)
