"""Casts in a row that ONNX Runtime makes one: which, and that what is written keeps each of them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest

import smelt
from smelt.ir import text
from smelt.runtime.onnxruntime import OnnxRuntime

T = ir.DataType
BEYOND = np.array([1.5, -2.5, 3e9, -3e9, 5e9, 2.0**40 + 3])
"""int64 keeps the low bits of these."""
ROUNDED = np.array([0.99999999, 1.9999, -0.9999, 99.99, 7.0, -0.0])
"""A narrower float is a whole number of most of these."""

LOSING = [
    *((T.FLOAT, T.INT64, T.INT16), (T.FLOAT, T.INT64, T.UINT16), (T.FLOAT, T.UINT64, T.UINT16)),
    *((T.DOUBLE, T.INT64, end) for end in (T.INT8, T.INT32, T.UINT32)),
    *((T.FLOAT, T.INT64, T.INT32), (T.FLOAT, T.UINT32, T.UINT16)),
    *((T.FLOAT, wide, T.INT8) for wide in (T.FLOAT16, T.BFLOAT16)),
    *((T.DOUBLE, T.FLOAT, end) for end in (T.INT8, T.UINT16)),
]


def chain(*types: ir.DataType) -> ir.Model:
    """``x`` cast to each type in turn."""
    first, *others = types
    names = [*(f"v{i}" for i in range(len(others) - 1)), "y"]
    given = ["x", *names]
    casts = [
        f"{y} = Cast<to={int(to)}>({x})" for x, y, to in zip(given, names, others, strict=False)
    ]
    inputs, outputs = (f"{each.name.lower()}[N]" for each in (first, types[-1]))
    return text.parse(f"g ({inputs} x) => ({outputs} y) {{ {' '.join(casts)} }}", 20)


def array(types: tuple[ir.DataType, ...]) -> np.ndarray:
    values = BEYOND if types[1].is_integer() else ROUNDED
    values = np.abs(values) if types[1] in (T.UINT64, T.UINT32) else values
    limit = 2.0**32 if types[1] == T.UINT32 else 2.0**63
    return values[values < limit].astype(types[0].numpy())


def cast_by_numpy(x: np.ndarray, types) -> np.ndarray:
    for dtype in types[1:]:
        x = x.astype({T.BFLOAT16: ml_dtypes.bfloat16}.get(dtype) or dtype.numpy())
    return x


def plain(model: ir.Model, x: np.ndarray) -> np.ndarray:
    """What the runtime computes of the model as it stands, without optimizations."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    data = ir.to_proto(model).SerializeToString()
    return ort.InferenceSession(data, options).run(None, {"x": x})[0]


@pytest.mark.parametrize("types", LOSING, ids=lambda each: "-".join(t.name for t in each))
def test_the_runtime_makes_them_one_and_what_is_written_stays_two(types) -> None:
    x = array(types)
    expected = cast_by_numpy(x, types)
    assert not np.array_equal(plain(chain(*types), x), expected)
    for optimized in (False, True):
        (y,) = OnnxRuntime(chain(*types), optimized=optimized)(x)
        np.testing.assert_array_equal(y, expected)


def test_a_chain_of_four() -> None:
    """A float16 that is a float again before it ends as int8."""
    types = (T.FLOAT, T.FLOAT16, T.FLOAT, T.INT8)
    x = array(types)
    (y,) = OnnxRuntime(chain(*types), optimized=True)(x)
    np.testing.assert_array_equal(y, cast_by_numpy(x, types))


@pytest.mark.parametrize(
    "between", ["n = Identity(v)", "one = Constant<value_ints=[1]>() n = Mul(v, one)"]
)
def test_a_no_op_between_casts_becomes_a_clip_without_bounds(between: str) -> None:
    graph = f"g (float[N] x) => (int32[N] y) {{ v = Cast<to=7>(x) {between} y = Cast<to=6>(n) }}"
    model = smelt.optimize(text.parse(graph, 20))
    assert [node.op_type for node in model.graph] == ["Cast", "Clip", "Cast"]
    x = BEYOND.astype(np.float32)
    expected = cast_by_numpy(x, (T.FLOAT, T.INT64, T.INT32))
    for optimized in (False, True):
        np.testing.assert_array_equal(OnnxRuntime(model, optimized=optimized)(x)[0], expected)


@pytest.mark.parametrize(
    "types",
    [
        *((T.INT64, T.FLOAT, T.INT16), (T.INT32, T.FLOAT, T.INT8)),  # right where it is defined
        *((T.FLOAT, T.INT32, T.INT64), (T.FLOAT, T.UINT32, T.INT32)),  # as wide, or wider
        *((T.FLOAT16, T.FLOAT, T.INT8), (T.BFLOAT16, T.FLOAT, T.INT16)),  # loses nothing
        *((T.FLOAT, T.FLOAT16, T.FLOAT), (T.FLOAT, T.INT64, T.FLOAT16)),  # ends as a float
        *((T.FLOAT, T.INT64, T.BOOL), (T.INT64, T.INT32, T.INT8)),
    ],
    ids=lambda each: "-".join(t.name for t in each),
)
def test_casts_that_it_computes_right_stay_plain(types) -> None:
    assert not smelt.to_proto(chain(*types), functions=True).functions


def test_an_earlier_cast_that_others_read_is_one_all_the_same() -> None:
    graph = """
        g (float[N] x) => (int32[N] y, int64[N] v) { v = Cast<to=7>(x) y = Cast<to=6>(v) }
    """
    x = BEYOND.astype(np.float32)
    y, v = OnnxRuntime(text.parse(graph, 20))(x)
    np.testing.assert_array_equal(y, v.astype(np.int32))


def test_models_that_are_loaded_again_have_the_casts_and_no_functions() -> None:
    model = chain(T.FLOAT, T.INT64, T.INT32)
    proto = smelt.to_proto(model, functions=True)
    assert [function.name for function in proto.functions] == ["Cast"]
    assert [node.op_type for node in smelt.load(proto).graph] == ["Cast", "Cast"]
