"""What the installed ONNX Runtime computes wrong, and that what stands in for it is right."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
from installed import ONNXRUNTIME

import smelt
from smelt.ir import text
from smelt.operators.onnxruntime.cast_chains import CLIPPED
from smelt.operators.onnxruntime.runtime_defects import DEFECTS
from smelt.runtime.onnxruntime import OnnxRuntime

RNG = np.random.default_rng(0)
LONG = np.concatenate([RNG.integers(-(2**bits), 2**bits, 400) for bits in (20, 32, 33, 54, 62)])
OTHER = RNG.permutation(LONG)
LIMITS = np.iinfo(np.int64)
DIVISORS = np.where(OTHER == 0, 1, OTHER)
SPECIAL = np.array([np.nan, -np.nan, 1, -2, 0.0, -0.0, np.inf, -np.inf], np.float16)

CASES = {
    ("Max", ir.DataType.INT64): ("int64", "y = Max(x, z)", (LONG, OTHER), np.maximum),
    ("Min", ir.DataType.INT64): ("int64", "y = Min(x, z, x)", (LONG, OTHER), np.minimum),
    ("Mod", ir.DataType.INT64): ("int64", "y = Mod<fmod=1>(x, z)", (LONG, DIVISORS), np.fmod),
    ("Mod", ir.DataType.UINT64): (
        "uint64",
        "y = Mod<fmod=1>(x, z)",
        (LONG.astype(np.uint64), DIVISORS.astype(np.uint64)),
        np.fmod,
    ),
    ("Sign", ir.DataType.BFLOAT16): (
        "float",
        "h = Cast<to=16>(x) s = Sign(h) y = Cast<to=1>(s)",
        (SPECIAL.astype(np.float32),),
        np.sign,
    ),
    ("Sign", ir.DataType.FLOAT16): ("float16", "y = Sign(x)", (SPECIAL,), np.sign),
}
REDUCED = {"ReduceMax": np.max, "ReduceMin": np.min}
MENDED = {key: (1, 32) for key in DEFECTS if key[0] not in ("Sign", "Cast")}
"""The release of ONNX Runtime that computes a row right, where there is one."""
ROWS = LONG.reshape(-1, 10)


def elementwise(key) -> tuple[ir.Model, tuple[np.ndarray, ...], np.ndarray]:
    kind, node, arrays, function = CASES[key]
    inputs = ", ".join(f"{kind}[N] {name}" for name in "xz"[: len(arrays)])
    model = text.parse(f"g ({inputs}) => ({kind}[N] y) {{ {node} }}", 18)
    return model, arrays, function(*arrays)


def reduction(op_type: str, keepdims: int = 0, axes: str = "{1}", version: int = 18) -> ir.Model:
    dims = {("{1}", 0): "M", ("{1}", 1): "M,1"}.get((axes, keepdims), "1,1" if keepdims else "")
    count = axes.count(",") + 1
    graph = f"g (int64[M,N] x) => (int64[{dims}] y) <int64[{count}] a = {axes}> "
    return text.parse(graph + f"{{ y = {op_type}<keepdims={keepdims}>(x, a) }}", version)


def run_plain(model: ir.Model, arrays) -> np.ndarray:
    session = ort.InferenceSession(
        ir.to_proto(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [value.name for value in session.get_inputs()]
    (y,) = session.run(None, dict(zip(names, arrays, strict=True)))
    return y


def test_each_row_has_a_case() -> None:
    casts = {
        ("Cast", dtype) for dtype in CLIPPED
    }  # tests/operators/onnxruntime/test_cast_chains.py
    assert {*CASES, *casts, *((name, ir.DataType.INT64) for name in REDUCED)} == set(DEFECTS)


@pytest.mark.parametrize("key", CASES, ids=str)
def test_the_runtime_is_wrong_and_the_row_is_right(key) -> None:
    """A row may go when the oldest runtime that we support is right."""
    model, arrays, expected = elementwise(key)
    right = np.array_equal(run_plain(model, arrays), expected, equal_nan=True)
    assert right == (key in MENDED and MENDED[key] <= ONNXRUNTIME)
    (y,) = OnnxRuntime(model)(*arrays)
    np.testing.assert_array_equal(y, expected)
    assert y.dtype == expected.dtype


@pytest.mark.parametrize("op_type", REDUCED)
def test_reductions_along_the_last_axis(op_type: str) -> None:
    expected = REDUCED[op_type](ROWS, axis=1)
    right = np.array_equal(run_plain(reduction(op_type), [ROWS]), expected)
    assert right == (MENDED[op_type, ir.DataType.INT64] <= ONNXRUNTIME)
    (y,) = OnnxRuntime(reduction(op_type))(ROWS)
    np.testing.assert_array_equal(y, expected)
    (kept,) = OnnxRuntime(reduction(op_type, keepdims=1))(ROWS)
    np.testing.assert_array_equal(kept, expected[:, None])
    (whole,) = OnnxRuntime(reduction(op_type, axes="{0,1}"))(ROWS)
    assert whole == REDUCED[op_type](ROWS)


@pytest.mark.parametrize("op_type", REDUCED)
def test_extrema_at_the_limits_and_of_nothing(op_type: str) -> None:
    x = np.array([[LIMITS.min, LIMITS.max], [LIMITS.max, LIMITS.max], [-1, 0]])
    runner = OnnxRuntime(reduction(op_type))
    np.testing.assert_array_equal(runner(x)[0], REDUCED[op_type](x, axis=1))
    least = LIMITS.min if op_type == "ReduceMax" else LIMITS.max
    assert runner(np.zeros((3, 0), np.int64))[0].tolist() == [least] * 3


PLAIN = {
    "sizes": "s = Shape(x) n = Gather(s, i) y = Max(n, i)",
    "casts of narrower integers": "n = Cast<to=7>(k) y = Min(n, i)",
    "a floor remainder": "n = Cast<to=7>(k) y = Mod(n, n)",
}


@pytest.mark.parametrize("body", PLAIN.values(), ids=PLAIN)
def test_operators_that_the_runtime_computes_correctly_stay(body: str, tmp_path) -> None:
    graph = f"g (float[M,N] x, int32[1] k) => (int64[1] y) <int64[1] i = {{1}}> {{ {body} }}"
    model = text.parse(graph, 18)
    assert not smelt.to_proto(model, functions=True).functions
    written = [node.op_type for node in smelt.to_proto(model).graph.node]
    assert written == [node.op_type for node in model.graph]


def test_models_that_are_loaded_again_have_the_operator() -> None:
    model, *_ = elementwise(("Max", ir.DataType.INT64))
    proto = smelt.to_proto(model, functions=True)
    assert [function.name for function in proto.functions] == ["Max"]
    assert [(node.domain, node.op_type) for node in smelt.load(proto).graph] == [("", "Max")]
