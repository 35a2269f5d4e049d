"""Requantization by multipliers and shifts: the option, its range, and what it leaves out."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_library import Library, compile_c, ops, with_values
from quantized_arithmetic import in_fixed_point

from smelt.native.kernels.quantized.fixed_point import multiplier_of


@pytest.mark.parametrize("factor", [1.0, 0.5, 0.3, 1e-9, 3.7, 2.0**-31, 1 - 2.0**-40, 1e4])
def test_a_factor_is_a_multiplier_of_31_bits_and_a_shift(factor: float) -> None:
    multiplier, shift = multiplier_of(factor)
    assert 2**30 <= multiplier < 2**31
    assert math.ldexp(multiplier, shift - 31) == pytest.approx(factor, rel=2.0**-30)


@pytest.mark.parametrize("factor", [0.0, 1e-12, 2.0**-40])
def test_factors_too_small_to_change_a_result_become_zero(factor: float) -> None:
    assert multiplier_of(factor) == (0, 0)


PRODUCT = (
    "g (uint8[R,K] x, float s, uint8 z, int8[K,C] w, float[C] v, int8[C] o, float t, uint8 u) => "
    "(uint8[R,C] y) { y = QLinearMatMul(x, s, z, w, v, o, t, u) }"
)
SHAPES = {"one row": (1, 37, 19), "rows": (13, 64, 40), "few columns": (7, 5, 3)}


def product(rows: int, depth: int, columns: int) -> tuple[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng(columns)
    values = {
        "s": np.float32(0.02),
        "z": np.uint8(118),
        "w": rng.integers(-128, 128, (depth, columns)).astype(np.int8),
        "v": rng.uniform(0.001, 0.02, columns).astype(np.float32),
        "o": np.zeros(columns, np.int8),
        "t": np.float32(0.05 * math.sqrt(depth)),
        "u": np.uint8(120),
    }
    sizes = {"R": rows, "K": depth, "C": columns}
    return re.sub(r"\b[RKC]\b", lambda m: str(sizes[m[0]]), PRODUCT), values


@pytest.fixture(scope="module")
def products() -> Library:
    made = {name: product(*shape) for name, shape in SHAPES.items()}
    graphs = {name: graph for name, (graph, _) in made.items()}
    values = {name: values for name, (_, values) in made.items()}
    return Library(graphs, values=values, quantized="fixed")


@pytest.mark.parametrize("name", SHAPES)
def test_products_of_matrices(products: Library, name: str) -> None:
    rows, depth, columns = SHAPES[name]
    _, v = product(rows, depth, columns)
    x = np.random.default_rng(1).integers(0, 256, (rows, depth)).astype(np.uint8)
    sums = (x.astype(int) - int(v["z"])) @ v["w"].astype(int)
    factor = np.float64(v["s"]) * v["v"].astype(np.float64) / np.float64(v["t"])
    (got,) = products.run(name, [x])
    np.testing.assert_array_equal(got, in_fixed_point(sums, factor, v["u"], np.dtype("uint8")))


WHOLE = (
    "g (uint8[1,4,6,6] q, float s, uint8 z, float t, int8[4,4,3,3] w, float[4] ws) => "
    "(uint8[1,4,6,6] y) { x = DequantizeLinear(q, s, z) v = DequantizeLinear<axis=0>(w, ws) "
    "c = Conv<pads=[1,1,1,1]>(x, v) r = Relu(c) p = QuantizeLinear(r, t, z) "
    "d = DequantizeLinear(p, t, z) a = Add(d, x) b = QuantizeLinear(a, t, z) "
    "e = DequantizeLinear(b, t, z) m = Mul(e, x) g = QuantizeLinear(m, t, z) "
    "h = DequantizeLinear(g, t, z) o = Softmax(h) y = QuantizeLinear(o, s, z) }"
)
VALUES = {
    "s": np.float32(0.02),
    "z": np.uint8(10),
    "t": np.float32(0.03),
    "w": np.random.default_rng(0).integers(-9, 10, (4, 4, 3, 3)).astype(np.int8),
    "ws": np.full(4, 0.02, np.float32),
}


def text_of(quantized: str) -> str:
    artifact = compile_c(with_values(WHOLE, 23, VALUES), quantized=quantized)
    assert sum("Quantized" in op or "QLinear" in op for op in ops(artifact)) == 4
    return artifact.files["model.c"].decode()


def floats_in(text: str) -> list[str]:
    """Kernels with floats in their text."""
    bodies = re.split(r"\n(?=static )", text)
    kernels = [body for body in bodies if re.match(r"static void [QC]\w+_\d\(", body)]
    assert len(kernels) == 5
    return [body for body in kernels if re.search(r"float|double|lrint|rounded", body)]


def test_kernels_have_no_floats() -> None:
    assert floats_in(text_of("integers"))
    assert floats_in(text_of("fixed")) == []


@pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None, reason="gcc for ARM is not installed"
)
def test_a_cortex_m0_needs_no_library_of_floats(tmp_path: Path) -> None:
    needed = {}
    for quantized in ("fixed", "integers"):
        model = with_values(WHOLE, 23, VALUES)
        artifact = compile_c(model, quantized=quantized, cpu="cortex-m0")
        artifact.save(tmp_path / quantized)
        command = "arm-none-eabi-gcc -mcpu=cortex-m0 -mthumb -std=c99 -Os -c model.c -o model.o"
        subprocess.run(command.split(), cwd=tmp_path / quantized, check=True)
        command = "arm-none-eabi-nm -u model.o"
        listed = subprocess.run(
            command.split(), cwd=tmp_path / quantized, check=True, capture_output=True, text=True
        )
        needed[quantized] = re.findall(r"__aeabi_[fd]\w+|lrintf|\w+2[fd]\b", listed.stdout)
    assert needed["fixed"] == []
    assert "lrintf" in needed["integers"]
