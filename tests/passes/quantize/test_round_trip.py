"""The bound for exact round trips of integers, compared with arithmetic in the type itself."""

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from smelt.ir import text
from smelt.ir.constants import Constants
from smelt.passes.quantize.quantization import Quantization
from smelt.passes.quantize.round_trip import integer_range, largest_steps, round_trip_flaw

TYPES = {"float": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
INTEGERS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "int4": (-8, 7)}


def _flaw(real: str, integer: str, bits: int) -> str | None:
    literal = bits if real != "float" else float(np.uint32(bits).view(np.float32))
    model = text.parse(
        f"g ({integer}[N] x) => ({integer}[N] y) <{real} s = {{{literal!r}}}, {integer} z = {{1}}>"
        "{ d = DequantizeLinear(x, s, z)  y = QuantizeLinear(d, s, z) }",
        21,
    )
    model.graph[0].outputs[0].dtype = model.graph.initializers["s"].dtype
    dq, q = (Quantization.of(node) for node in model.graph)
    assert dq is not None
    assert q is not None
    return round_trip_flaw(dq, q, Constants())


def _survive(real: str, integer: str, scale: np.ndarray) -> bool:
    """True if integers stay equal by division and by the reciprocal."""
    low, high = INTEGERS[integer]
    steps = np.arange(low, high + 1) - 1
    with np.errstate(all="ignore"):
        floats = steps.astype(TYPES[real]) * scale
        divided, multiplied = floats / scale, floats * (TYPES[real](1) / scale)
        rounded = [np.rint(item.astype(np.float64)) for item in (divided, multiplied)]
    return all(np.array_equal(item, steps) for item in rounded)


@pytest.mark.parametrize("integer", INTEGERS)
@pytest.mark.parametrize("real", TYPES)
def test_accepted_scales_preserve_all_integers(real: str, integer: str) -> None:
    width = np.dtype(TYPES[real]).itemsize * 8
    unsigned = np.dtype(f"uint{width}")
    passed = 0
    for bits in np.random.default_rng(0).integers(0, 2 ** (width - 1), 60):
        scale = np.asarray(bits, unsigned).view(TYPES[real])
        with np.errstate(invalid="ignore"):
            finite = np.isfinite(scale)
        if finite and _flaw(real, integer, int(bits)) is None:
            assert _survive(real, integer, scale)
            passed += 1
    too_coarse = {("float16", "int16"), *(("bfloat16", i) for i in ("int8", "uint8", "int16"))}
    assert (passed > 0) == ((real, integer) not in too_coarse)


@pytest.mark.parametrize(("real", "bits"), [("bfloat16", 15821), ("float16", 11878)])
def test_too_coarse_scales_change_integers(real: str, bits: int) -> None:
    scale = np.asarray(bits, np.uint16).view(TYPES[real])
    assert _flaw(real, "int16", bits) is not None
    assert not _survive(real, "int16", scale)


RANGES = {
    "INT4": (-8, 7), "UINT4": (0, 15), "INT8": (-128, 127), "UINT8": (0, 255),
    "INT16": (-32768, 32767), "UINT16": (0, 65535), "INT32": (-(2**31), 2**31 - 1),
}  # fmt: skip


@pytest.mark.parametrize("name", RANGES)
def test_the_ends_of_integer_types(name: str) -> None:
    assert integer_range(ir.DataType[name]) == RANGES[name]


@pytest.mark.parametrize(
    ("integer", "zero_point", "steps"),
    [("int8", "-128", 255), ("int8", "5", 133), ("uint8", "0", 255), ("uint8", "100", 155), ("int8", None, 255)],
)  # fmt: skip
def test_the_largest_step_from_a_zero_point(
    integer: str, zero_point: str | None, steps: int
) -> None:
    known = f", {integer} z = {{{zero_point}}}" if zero_point is not None else ""
    given = f", {integer} z" if zero_point is None else ""
    model = text.parse(
        f"g ({integer}[N] x{given}) => (float[N] y) <float s = {{1}}{known}> "
        "{ y = DequantizeLinear(x, s, z) }"
    )
    q = Quantization.of(model.graph[0])
    assert q is not None
    assert largest_steps(q, Constants()).tolist() == steps
