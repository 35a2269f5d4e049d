"""The functions that stand in for math.h, against double precision."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from smelt.native.kernels.exponential import EXP as VEC_EXP
from smelt.native.kernels.extremes import LARGER
from smelt.native.kernels.lane_math import (
    ERF,
    EXP,
    EXPM1,
    IN_LOOPS,
    LANE_FMA,
    LOG,
    LOG1P,
    NARROW_EXP,
    TANH,
)
from smelt.native.kernels.lane_sincos import COS, SIN, SIN_QUARTERS
from smelt.native.kernels.vector import PRELUDE
from smelt.runtime.c_library import build

HEAD = "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n#include <stddef.h>\n"

FUNCTIONS = {
    "exp": np.exp,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "expm1": np.expm1,
    "log1p": np.log1p,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 88.722, 88.73, -87.4, -100.0, -103.9, -150.0, 1e30]
SPECIAL += [1e-30, 1e-40, 0.625, 0.99999994, 1.0, 4.0, 3.9999998]
SPECIAL += [17.0, 20.0, 25.5, 3.4028235e38]


@pytest.fixture(scope="module", params=["-O1", "-O3 -march=native"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    loops = "".join(
        f"void all_{name}(const float *x, float *y, ptrdiff_t n) "
        f"{{ for (ptrdiff_t i = 0; i < n; ++i) y[i] = lane_{name}(x[i]); }}\n"
        for name in FUNCTIONS
    )
    text = HEAD + IN_LOOPS + LANE_FMA + EXP + NARROW_EXP + TANH + ERF + EXPM1 + LOG1P + LOG
    text += SIN_QUARTERS + SIN + COS + loops
    flags = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", *request.param.split())
    folder: Path = tmp_path_factory.mktemp("lanes")
    return ctypes.CDLL(str(build({"model.c": text.encode()}, folder, flags)))


def test_they_stay_in_their_loops_however_many_there_are(tmp_path: Path) -> None:
    """A loop that calls a function is no loop of vectors."""
    loops = "".join(
        f"void f{i}(float *x) {{ for (int i = 0; i < 64; ++i) x[i] = {i} + lane_erf(x[i]); }}\n"
        for i in range(30)
    )
    head = "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n"
    text = f"{head}{IN_LOOPS}{LANE_FMA}{NARROW_EXP}{ERF}"
    library = build({"model.c": (text + loops).encode()}, tmp_path, ("-O2",))
    assert b"lane_" not in library.read_bytes()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_within_four_units_in_the_last_place(library: ctypes.CDLL, name: str) -> None:
    rng = np.random.default_rng(0)
    spread = [rng.uniform(-w, w, 20_000) for w in (1e-3, 1.2, 5, 104)]
    x = np.concatenate([*spread, SPECIAL, -np.asarray(SPECIAL)]).astype(np.float32)
    y = np.empty_like(x)
    pointers = (x.ctypes.data_as(ctypes.c_void_p), y.ctypes.data_as(ctypes.c_void_p))
    getattr(library, f"all_{name}")(*pointers, ctypes.c_ssize_t(x.size))
    with np.errstate(all="ignore"):
        want = FUNCTIONS[name](x.astype(np.float64)).astype(np.float32)
    finite = np.isfinite(want)
    np.testing.assert_array_equal(y[~finite], want[~finite])
    units = np.abs(y[finite].astype(np.float64) - want[finite]) / np.spacing(np.abs(want[finite]))
    assert units.max() <= 4, x[finite][units.argmax()]
    zero = x == 0
    np.testing.assert_array_equal(np.signbit(y[zero]), np.signbit(want[zero]))


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_of_all_magnitudes_and_near_quarters_of_turns(library: ctypes.CDLL, name: str) -> None:
    """NumPy takes doubles to the C library, which knows as much of pi as it takes."""
    rng = np.random.default_rng(1)
    powers = rng.uniform(-1, 1, 200_000) * 2.0 ** rng.integers(-149, 129, 200_000)
    bounds = [2.0**n * (1 + e) for n in (51, 79, 107) for e in (-(2.0**-24), 0, 2.0**-23)]
    near = [16367173 * 2.0**72, 2.0**127 * 1.9999998, *np.arange(-4000, 4000) * (np.pi / 2)]
    with np.errstate(over="ignore"):
        x = np.concatenate([powers, bounds, near]).astype(np.float32)
    x = x[np.isfinite(x)]
    y = np.empty_like(x)
    pointers = (x.ctypes.data_as(ctypes.c_void_p), y.ctypes.data_as(ctypes.c_void_p))
    getattr(library, f"all_{name}")(*pointers, ctypes.c_ssize_t(x.size))
    want = FUNCTIONS[name](x.astype(np.float64))
    units = np.abs(y - want) / np.spacing(np.abs(want).astype(np.float32))
    assert units.max() <= 2, x[units.argmax()]


@pytest.mark.parametrize("flags", ["-march=native", "-march=haswell"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_exp_of_whole_vectors(tmp_path: Path, compiler: str, flags: str) -> None:
    """That of a Softmax, which with 16 lanes has an instruction for the power of 2."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this CPU has no AVX2")
    loop = (
        "void all(const float *x, float *y, ptrdiff_t n) { for (ptrdiff_t i = 0; i < n; i += LANES)"
        " *(vec *)(y + i) = vec_exp(*(const vec *)(x + i)); }\n"
    )
    text = HEAD + IN_LOOPS + PRELUDE + LARGER + VEC_EXP + loop
    command = [compiler, "-O2", flags, "-shared", "-fPIC", "m.c", "-o", "m.so"]
    (tmp_path / "m.c").write_text(text)
    subprocess.run(command, cwd=tmp_path, check=True)
    rng = np.random.default_rng(0)
    spread = [rng.uniform(*w, 40_000) for w in ((-1e-3, 1e-3), (-5, 5), (-105, 90), (-105, -86))]
    x = np.concatenate([*spread, SPECIAL, -np.asarray(SPECIAL), np.zeros(16)]).astype(np.float32)
    x = x[: x.size // 16 * 16]
    y = np.empty_like(x)
    pointers = (x.ctypes.data_as(ctypes.c_void_p), y.ctypes.data_as(ctypes.c_void_p))
    ctypes.CDLL(str(tmp_path / "m.so")).all(*pointers, ctypes.c_ssize_t(x.size))
    with np.errstate(all="ignore"):
        want = np.exp(x.astype(np.float64)).astype(np.float32)
    finite = np.isfinite(want)
    np.testing.assert_array_equal(y[~finite], want[~finite])
    units = np.abs(y[finite].astype(np.float64) - want[finite]) / np.spacing(want[finite])
    assert units.max() <= 2, x[finite][units.argmax()]
