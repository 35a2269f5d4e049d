"""Products and rows of packed weights run packed, by compiled C and by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import with_values

import smelt
from smelt.errors import InvalidModel
from smelt.operators.onnxruntime.microsoft.packed import product, rows

RNG = np.random.default_rng(0)
PRODUCT = "K=64, N=40, bits=4, block_size=32, accuracy_level=4"
SCALES = RNG.uniform(0.01, 0.1, (40, 2)).astype(np.float16)
CODES = RNG.integers(0, 256, (40, 2, 16)).astype(np.uint8)


@pytest.mark.parametrize("engine", ["native", "numpy"])
@pytest.mark.parametrize("stored", ["float", "float16"])
def test_products_read_packed_weights(engine: str, stored: str) -> None:
    scales = SCALES.astype(np.float16 if stored == "float16" else np.float32)
    graph = (
        f"g (float[B,64] x, uint8[40,2,16] b, {stored}[40,2] s) => (float[B,40] y) "
        f"{{ f = Cast<to=1>(s) y = com.microsoft.MatMulNBits<{PRODUCT}>(x, b, f) }}"
    )
    model = with_values(graph, 23, {"b": CODES, "s": scales})
    artifact = smelt.compile(model, target="host", engine=engine)
    x = RNG.normal(size=(3, 64)).astype(np.float32)
    attributes = {"K": 64, "N": 40, "bits": 4, "block_size": 32}
    (want,) = product((x, CODES, SCALES.astype(np.float32)), attributes)
    assert np.linalg.norm(artifact(x)[0] - want) < 0.01 * np.linalg.norm(want)
    operators = [step.op for step in artifact.plan.steps.instructions]
    assert [op for op in operators if op != "Cast"] == ["MatMulNBits"]


@pytest.mark.parametrize("engine", ["native", "numpy"])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_rows_are_unpacked_one_by_one(engine: str, bits: int, has_zeros: bool) -> None:
    data = RNG.integers(0, 256, (9, 48 * bits // 8)).astype(np.uint8)
    held = {"d": data, "s": RNG.uniform(0.01, 0.1, (9, 3)).astype(np.float32)}
    if has_zeros:
        held["z"] = RNG.integers(0, 256, (9, -(-3 * bits // 8))).astype(np.uint8)
    zeros = f", uint8[9,{held['z'].shape[1]}] z" if has_zeros else ""
    graph = (
        f"g (int64[B,2] i, uint8[9,{data.shape[1]}] d, float[9,3] s{zeros}) => (float[B,2,48] y) "
        f"{{ y = com.microsoft.GatherBlockQuantized<bits={bits}, block_size=16, quantize_axis=1>"
        f"(d, i, s{', z' if has_zeros else ''}) }}"
    )
    artifact = smelt.compile(with_values(graph, 23, held), target="host", engine=engine)
    indices = np.array([[0, -1], [8, 3]])
    attributes = {"bits": bits, "block_size": 16, "quantize_axis": 1, "gather_axis": 0}
    (want,) = rows((data, indices, held["s"], held.get("z")), attributes)
    np.testing.assert_allclose(artifact(indices)[0], want, rtol=1e-6)
    assert [step.op for step in artifact.plan.steps.instructions] == ["GatherBlockQuantized"]
    with pytest.raises(InvalidModel, match="E321"):
        artifact(np.array([[0, 9]]))
