"""Kernels that have a form for the vectors of this machine, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import STRICT, Library, random_inputs


def _pool(op: str, shape: str, result: str, window: str) -> str:
    return f"g (float{shape} x) => (float{result} y) {{ y = {op}<{window}>(x) }}"


PAD = "pads = [1,1,1,1]"
WINDOWS = {
    "3x3": ("[2,3,20,21]", "[2,3,20,21]", f"kernel_shape = [3,3], {PAD}"),
    "13x13": ("[1,2,20,20]", "[1,2,20,20]", "kernel_shape = [13,13], pads = [6,6,6,6]"),
    "of narrow rows": ("[1,3,7,7]", "[1,3,7,7]", f"kernel_shape = [3,3], {PAD}"),
    "of rows of 3": ("[1,3,9,3]", "[1,3,9,3]", f"kernel_shape = [3,3], {PAD}"),
    "by 2": ("[1,2,15,36]", "[1,2,7,18]", "kernel_shape = [2,2], strides = [2,2]"),
    "3 by 2": ("[1,2,56,57]", "[1,2,28,29]", f"kernel_shape = [3,3], strides = [2,2], {PAD}"),
    "by 3": ("[1,2,30,41]", "[1,2,9,12]", "kernel_shape = [5,6], strides = [3,3]"),
    "rounded up": (
        "[1,2,9,9]",
        "[1,2,4,4]",
        "kernel_shape = [3,3], strides = [2,2], ceil_mode = 1",
    ),
    "of bands": ("[1,1,40,150]", "[1,1,40,150]", f"kernel_shape = [3,3], {PAD}"),
    "of the plane": ("[2,9,7,6]", "[2,9,1,1]", "kernel_shape = [7,6]"),
    "of the row": ("[2,9,35]", "[2,9,1]", "kernel_shape = [35], strides = [2]"),
    "of a row": ("[1,2,77]", "[1,2,39]", "kernel_shape = [3], strides = [2], pads = [1,1]"),
    "of a volume": ("[1,2,5,6,20]", "[1,2,5,6,20]", "kernel_shape = [3,3,3], pads = [1,1,1,1,1,1]"),
}
DILATED = ("[1,2,20,33]", "[1,2,18,31]", f"kernel_shape = [3,3], dilations = [2,2], {PAD}")
POOLS = {f"MaxPool {name}": _pool("MaxPool", *case) for name, case in WINDOWS.items()}
POOLS |= {f"AveragePool {name}": _pool("AveragePool", *case) for name, case in WINDOWS.items()}
POOLS |= {
    "MaxPool dilated": _pool("MaxPool", *DILATED),
    "AveragePool of pairs": _pool(
        "AveragePool", *WINDOWS["3x3"][:2], "kernel_shape = [3,2], pads = [1,1,1,0]"
    ),
    "AveragePool of padding": _pool(
        "AveragePool", *WINDOWS["3x3"][:2], f"{WINDOWS['3x3'][2]}, count_include_pad = 1"
    ),
}


def _along(text: str, shape: str = "[21,70]", result: str = "float[21,70]") -> str:
    return f"g (float{shape} x) => ({result} y) {{ {text} }}"


FIRST, LAST = (f"a = Constant<value_int = {axis}>()" for axis in (0, 1))
TURNS = {
    "channels last": ("[2,20,9,21]", "[2,9,21,20]", "[0,2,3,1]"),
    "channels first": ("[2,9,21,20]", "[2,20,9,21]", "[0,3,1,2]"),
    "to pixels of 3": ("[1,3,5,13]", "[1,5,13,3]", "[0,2,3,1]"),
    "of pixels of 3": ("[1,5,13,3]", "[1,3,5,13]", "[0,3,1,2]"),
    "to pairs": ("[2,41]", "[41,2]", "[1,0]"),
    "of pairs": ("[41,2]", "[2,41]", "[1,0]"),
    "all dims": ("[3,5,7,9]", "[9,7,5,3]", "[3,2,1,0]"),
    "heads": ("[2,6,5,16]", "[2,5,16,6]", "[0,2,3,1]"),
}
ROWS = {
    **{
        f"Softmax of {n}": _along("y = Softmax(x)", f"[5,{n}]", f"float[5,{n}]")
        for n in (1, 2, 15, 16, 17, 33, 70)
    },
    **{
        f"{op} of short rows{name}": _along(f"{text}", "[39,10]", "float[39,10]")
        for op in ("Softmax", "LogSoftmax")
        for name, text in (
            ("", f"y = {op}(x)"),
            (" in place", f"t = Neg(x) s = {op}(t) y = Neg(s)"),
        )
    },
    "LogSoftmax": _along("y = LogSoftmax(x)"),
    "Softmax in place": _along("t = Neg(x) s = Softmax(t) y = Neg(s)"),
    "ReduceMin": _along(
        "n = Constant<value_ints = [1]>() y = ReduceMin(x, n)", result="float[21,1]"
    ),
    "ArgMax": _along("y = ArgMax<axis = 1>(x)", result="int64[21,1]"),
    "ArgMin": _along("y = ArgMin<axis = 1>(x)", result="int64[21,1]"),
    "ArgMax beside": _along("y = ArgMax<axis = 0>(x)", result="int64[1,70]"),
    "last ArgMax beside": _along(
        "y = ArgMax<axis = 0, select_last_index = 1>(x)", result="int64[1,70]"
    ),
    "ArgMax of short rows": _along("y = ArgMax<axis = 1>(x)", "[140,5]", "int64[140,1]"),
    "Hardmax": _along("y = Hardmax(x)"),
    "CumSum": _along(f"{LAST} y = CumSum(x, a)"),
    "CumSum backwards": _along(f"{LAST} y = CumSum<reverse = 1, exclusive = 1>(x, a)"),
    "CumSum beside": _along(f"{FIRST} y = CumSum(x, a)"),
    "CumSum beside backwards": _along(f"{FIRST} y = CumSum<reverse = 1, exclusive = 1>(x, a)"),
    "depthwise 7x7": (
        "g (float[1,3,15,18] x, float[3,1,7,7] w, float[3] b) => (float[1,3,15,18] y) "
        "{ c = Conv<group = 3, pads = [3,3,3,3]>(x, w, b) y = Relu(c) }"
    ),
    "depthwise of small planes": (
        "g (float[2,3,7,7] x, float[6,1,5,5] w, float[6] b) => (float[2,6,7,7] y) "
        "{ y = Conv<group = 3, pads = [2,2,2,2]>(x, w, b) }"
    ),
    "depthwise of few rows": (
        "g (float[2,3,4,4] x, float[3,1,3,3] w) => (float[2,3,4,4] y) "
        "{ y = Conv<group = 3, pads = [1,1,1,1]>(x, w) }"
    ),
    "depthwise 5x5": (
        "g (float[1,3,9,9] x, float[3,1,5,5] w) => (float[1,3,9,9] y) "
        "{ c = Conv<group = 3, pads = [2,2,2,2]>(x, w) s = Sigmoid(c) y = Mul(c, s) }"
    ),
}
ROWS["ReduceMax"] = ROWS["ReduceMin"].replace("Min", "Max")
ROWS |= {
    f"Transpose to {name}": f"g (float{a} x) => (float{b} y) {{ y = Transpose<perm = {perm}>(x) }}"
    for name, (a, b, perm) in TURNS.items()
}


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(POOLS | ROWS, opset=22, flags=(*STRICT, "-march=native"))


@pytest.mark.parametrize("name", POOLS | ROWS)
def test_agrees_with_onnx_runtime(library: Library, name: str) -> None:
    library.check(name, random_inputs(library.models[name].source), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in POOLS if name.startswith("MaxPool")])
def test_a_window_is_nan_where_it_holds_one(library: Library, name: str) -> None:
    (x,) = random_inputs(library.models[name].source)
    x.reshape(-1)[5::97] = np.nan
    x.reshape(-1)[7::89] = -np.inf
    held = library.run(name, [np.isnan(x).astype(np.float32)])[0] > 0
    numbers = library.run(name, [np.where(np.isnan(x), np.float32(-9), x)])[0]
    np.testing.assert_array_equal(library.run(name, [x])[0], np.where(held, np.nan, numbers))


@pytest.mark.parametrize("name", ["ArgMax", "ArgMin", "ArgMax beside"])
@pytest.mark.parametrize("place", [0, 17, 69])
def test_nan_is_what_is_looked_for(library: Library, name: str, place: int) -> None:
    (x,) = random_inputs(library.models[name].source)
    x[:, place] = np.nan
    axis = 0 if "beside" in name else 1
    find = np.argmin if "Min" in name else np.argmax
    np.testing.assert_array_equal(library.run(name, [x])[0], np.expand_dims(find(x, axis), axis))


@pytest.mark.parametrize("place", [0, 40, 69])
def test_nan_spreads_over_its_row_only(library: Library, place: int) -> None:
    (x,) = random_inputs(library.models["LogSoftmax"].source)
    x[3, place] = np.nan
    for name in ("Softmax of 70", "LogSoftmax", "ReduceMax"):
        given = x[:5] if "70" in name else x
        (result,) = library.run(name, [given])
        np.testing.assert_array_equal(np.isnan(result).any(1), np.isnan(given).any(1))
        assert np.isnan(result[3]).all()


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_short_rows_end_as_long_ones(library: Library, op: str) -> None:
    """Where NaN, infinities and the sign of 0 stand, what a row comes to is what NumPy says."""
    (x,) = random_inputs(library.models[f"{op} of short rows"].source)
    x[3, 0], x[17, 9], x[18, 4], x[20] = np.nan, np.nan, np.inf, -np.inf
    x[22, 1:], x[30], x[38, 9] = -np.inf, -0.0, 200
    with np.errstate(invalid="ignore", divide="ignore"):
        less = x - x.max(1, keepdims=True)
        want = less - np.log(np.exp(less).sum(1, keepdims=True))
    want = np.exp(want) if op == "Softmax" else want
    got = library.run(f"{op} of short rows", [x])[0]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["depthwise of small planes", "depthwise of few rows"])
@pytest.mark.parametrize("plane", [0, 1, 2])
def test_a_plane_knows_nothing_of_others(library: Library, name: str, plane: int) -> None:
    """The next one is padded while one is multiplied."""
    given = random_inputs(library.models[name].source)
    whole = library.run(name, given)[0]
    x = given[0].copy()
    x[1, plane] = np.nan
    got = library.run(name, [x, *given[1:]])[0]
    filters = whole.shape[1] // 3
    odd = np.zeros(whole.shape[:2], bool)
    odd[1, plane * filters : (plane + 1) * filters] = True
    np.testing.assert_array_equal(got[~odd], whole[~odd])
    assert np.isnan(got[odd]).all()
