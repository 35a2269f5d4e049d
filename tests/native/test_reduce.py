"""Reductions, Softmax and normalizations against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import Library, compile_text, random_inputs

import smelt
from smelt.ir import text

OPS = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp"]
AXES = {
    "last": ("[3,4,70]", "[3,4,1]", (-1,)),
    "first": ("[3,4,5]", "[1,4,5]", (0,)),
    "middle": ("[3,4,5]", "[3,1,5]", (1,)),
    "around": ("[3,4,50]", "[1,4,1]", (0, 2)),
    "all": ("[3,4,5]", "[1,1,1]", (0, 1, 2)),
    "short rows": ("[3,23,4]", "[3,1,4]", (1,)),
    "short rows of parts": ("[5,3,21,2]", "[1,3,1,2]", (0, 2)),
    "of size 1": ("[3,1,5]", "[3,1,5]", (1,)),
}


def _reduce(op: str, shape: str, result: str, axes: tuple[int, ...], dtype: str = "float") -> str:
    listed = ", ".join(map(str, axes))
    return (
        f"g ({dtype}{shape} x) => ({dtype}{result} y) "
        f"{{ a = Constant<value_ints = [{listed}]>() y = Reduce{op}(x, a) }}"
    )


GRAPHS = {
    f"{op} {name}": _reduce(op, *case)
    for row, op in enumerate(OPS)
    for column, (name, case) in enumerate(AXES.items())
    if op in ("Sum", "Max") or (row + column) % 2
}
"""Each axis meets every other operator; ``test_equals_reference`` draws others."""
GRAPHS |= {
    f"{op} int": _reduce(op, "[3,40]", "[3,1]", (1,), "int64")
    for op in ("Sum", "Max", "Min", "Prod")
}
GRAPHS |= {
    f"{op} of rows of {dtype}": _reduce(op, "[4,3]", "[1,3]", (0,), dtype)
    for op in ("Sum", "Prod")
    for dtype in ("int64", "int32")
}
GRAPHS |= {
    "Sum of nothing": _reduce("Sum", "[3,0]", "[3,1]", (1,)),
    "Sum to rank 0": "g (float[3,4] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }",
    "global average": "g (float[2,3,5,7] x) => (float[2,3,1,1] y) { y = GlobalAveragePool(x) }",
    "global max": "g (float[2,3,5,7] x) => (float[2,3,1,1] y) { y = GlobalMaxPool(x) }",
    "softmax": "g (float[4,33] x) => (float[4,33] y) { y = Softmax(x) }",
    "softmax inside": "g (float[4,3,5] x) => (float[4,3,5] y) { y = Softmax<axis = 1>(x) }",
    "softmax of many rows": "g (float[2,5,9,15] x) => (float[2,5,9,15] y) { y = Softmax<axis = 1>(x) }",
    "log softmax of many rows": "g (float[5,128] x) => (float[5,128] y) { y = LogSoftmax<axis = 0>(x) }",
    "softmax of rows in place": (
        "g (float[3,70] x) => (float[3,70] y) { t = Neg(x) s = Softmax<axis = 0>(t) y = Neg(s) }"
    ),
    "softmax of one": "g (float[4,1] x) => (float[4,1] y) { y = Softmax(x) }",
    "log softmax": "g (float[4,33] x) => (float[4,33] y) { y = LogSoftmax(x) }",
    "softmax in place": "g (float[4,33] x) => (float[4,33] y) { t = Neg(x) s = Softmax(t) y = Neg(s) }",
    "batch norm": "g (float[2,3,4,5] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3,4,5] y) { y = BatchNormalization(x, s, b, m, v) }",
    "layer norm": "g (float[4,67] x, float[67] s, float[67] b) => (float[4,67] y) { y = LayerNormalization(x, s, b) }",
    "layer norm of two dims": "g (float[2,3,4] x, float[3,4] s) => (float[2,3,4] y) { y = LayerNormalization<axis = 1, epsilon = 0.01>(x, s) }",
    "layer norm broadcasting": "g (float[2,3,4] x, float[4] s, float[1] b) => (float[2,3,4] y) { y = LayerNormalization<axis = 1>(x, s, b) }",
    "rms norm": "g (float[2,3,4] x, float[4] s) => (float[2,3,4] y) { y = RMSNormalization(x, s) }",
    "instance norm": "g (float[2,3,4,5] x, float[3] s, float[3] b) => (float[2,3,4,5] y) { y = InstanceNormalization(x, s, b) }",
    "group norm": "g (float[2,4,3,3] x, float[4] s, float[4] b) => (float[2,4,3,3] y) { y = GroupNormalization<num_groups = 2>(x, s, b) }",
}


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(GRAPHS)


@pytest.mark.parametrize("name", GRAPHS)
def test_agrees_with_onnx_runtime(library: Library, name: str) -> None:
    low = 0.5 if "norm" in name or "Prod" in name else -2
    library.check(name, random_inputs(library.models[name].source, low=low), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "axis"), [("Max last", 2), ("Max first", 0), ("Max middle", 1)])
def test_nan_is_the_maximum_of_its_row(library: Library, name: str, axis: int) -> None:
    (x,) = random_inputs(library.models[name].source)
    x.reshape(-1)[1] = np.nan
    np.testing.assert_array_equal(library.run(name, [x])[0], x.max(axis, keepdims=True))


def test_nan_spreads_over_its_row_of_a_softmax_only(library: Library) -> None:
    (x,) = random_inputs(library.models["softmax"].source)
    x[1, 2] = np.nan
    library.check("softmax", [x])


def test_softmax_of_large_numbers_does_not_overflow(library: Library) -> None:
    x = np.full((4, 33), 3e38, np.float32)
    library.check("softmax", [x])


@pytest.mark.parametrize(("rows", "columns"), [(4, 3), (8, 2)])
def test_no_row_is_lost_where_the_compiler_optimizes(rows: int, columns: int) -> None:
    """GCC 12.2 lost rows where each step went from signed to unsigned and back."""
    artifact = compile_text(
        f"g (uint8[{rows},{columns}] x) => (int32[{columns}] y) <int64[1] a = {{0}}> "
        "{ w = Cast<to = 7>(x) s = ReduceSum<keepdims = 0>(w, a) y = Cast<to = 6>(s) }"
    )
    x = np.arange(rows * columns, dtype=np.uint8).reshape(rows, columns)
    np.testing.assert_array_equal(artifact(x)[0], x.sum(axis=0))


EDGES = {
    "int32": [[2**31 - 1, 2**31 - 1, -7], [-(2**31), -(2**31), -(2**31)], [-7, 0, 0]],
    "uint32": [[2**32 - 1, 2**32 - 1, 2**32 - 1], [2**32 - 1, 1, 2], [7, 0, 0]],
}


@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize("dtype", EDGES)
def test_means_of_integers_whose_sum_is_beyond_them(dtype: str, target: str) -> None:
    """They are between the least and the largest of them, and truncated."""
    x = np.array(EDGES[dtype], dtype)
    expected = np.array([[int(sum(map(int, row)) / 3)] for row in x], dtype)
    source = text.parse(_reduce("Mean", "[3,3]", "[3,1]", (1,), dtype))
    (got,) = smelt.compile(source, target=target)(x)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
    told = f"g ({dtype}[3,3] x, int64[1] a) => ({dtype}[3,1] y) {{ y = ReduceMean(x, a) }}"
    (got,) = smelt.compile(text.parse(told), target=target)(x, np.array([1]))
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


def test_longer_sums_and_products_of_integers_keep_their_low_bits() -> None:
    """As in NumPy and JAX; ONNX Runtime gives the largest number instead, and ONNX does not say."""
    x = np.array([2**40, 2**40 + 1, 3], np.int64)
    for op, expected in (("Prod", np.prod(x)), ("Sum", np.sum(x * 2**22))):
        source = text.parse(_reduce(op, "[3]", "[1]", (0,), "int64"))
        given = x if op == "Prod" else x * 2**22
        for target in ("c", "host"):
            (got,) = smelt.compile(source, target=target)(given)
            assert got.tolist() == [expected]
