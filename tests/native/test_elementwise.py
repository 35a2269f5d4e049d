"""Elementwise kernels against ONNX Runtime, over types, broadcasting and special values."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import Library, random_inputs

UNARY = [
    "Abs",
    "Atan",
    "Ceil",
    "Cos",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "Log",
    "Mish",
    "Neg",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Sigmoid",
    "Sign",
    "Sin",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Tanh",
    "ThresholdedRelu",
]
DOUBLE = ("Abs", "Exp", "Sqrt", "Tanh", "Sigmoid", "Relu", "Neg", "Floor")
BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "PRelu")
COMPARE = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")

GRAPHS: dict[str, str] = {}
for _op in UNARY:
    GRAPHS[_op] = f"g (float[3,37] x) => (float[3,37] y) {{ y = {_op}(x) }}"
for _op in DOUBLE:
    GRAPHS[f"{_op} double"] = f"g (double[5] x) => (double[5] y) {{ y = {_op}(x) }}"
for _op in BINARY:
    GRAPHS[_op] = f"g (float[4,1,5] x, float[1,3,5] z) => (float[4,3,5] y) {{ y = {_op}(x, z) }}"
    if _op == "PRelu":
        GRAPHS[_op] = "g (float[4,3,5] x, float[3,1] z) => (float[4,3,5] y) { y = PRelu(x, z) }"
for _op in ("Add", "Sub", "Mul"):
    for _t in ("int32", "int64"):
        GRAPHS[f"{_op} {_t}"] = f"g ({_t}[2,3] x, {_t}[3] z) => ({_t}[2,3] y) {{ y = {_op}(x, z) }}"
for _op in COMPARE:
    GRAPHS[_op] = f"g (float[4,3] x, float[3] z) => (bool[4,3] y) {{ y = {_op}(x, z) }}"
    GRAPHS[f"{_op} int"] = f"g (int64[4,3] x, int64[3] z) => (bool[4,3] y) {{ y = {_op}(x, z) }}"
for _op in ("And", "Or", "Xor"):
    GRAPHS[_op] = f"g (bool[4,3] x, bool[3] z) => (bool[4,3] y) {{ y = {_op}(x, z) }}"
GRAPHS |= {
    "PRelu unsigned": "g (uint32[4] x, uint32[4] z) => (uint32[4] y) { y = PRelu(x, z) }",
    "Not": "g (bool[4] x) => (bool[4] y) { y = Not(x) }",
    "IsNaN": "g (float[4] x) => (bool[4] y) { y = IsNaN(x) }",
    "IsInf": "g (float[4] x) => (bool[4] y) { y = IsInf(x) }",
    "IsInf negative": "g (float[4] x) => (bool[4] y) { y = IsInf<detect_positive = 0>(x) }",
    "Gelu tanh": 'g (float[40] x) => (float[40] y) { y = Gelu<approximate = "tanh">(x) }',
    "Where": "g (bool[4,1] c, float[3] x, float[4,3] z) => (float[4,3] y) { y = Where(c, x, z) }",
    "Where int": "g (bool[3] c, int64[3] x, int64 z) => (int64[3] y) { y = Where(c, x, z) }",
    "Add rank 0": "g (float x, float z) => (float y) { y = Add(x, z) }",
    "Add of one value": "g (float[7] x) => (float[7] y) { a = Neg(x) y = Add(a, a) }",
    "Mod": "g (int32[6] x, int32[6] z) => (int32[6] y) { y = Mod(x, z) }",
    "Div by a number": "g (int32[40] x) => (int32[40] y) { c = Constant<value = int32 {-3}>() y = Div(x, c) }",
    "Mod by a number": "g (int8[40] x) => (int8[40] y) { c = Constant<value = int8 {2}>() y = Mod(x, c) }",
    "Mod fmod": "g (float[6] x, float[6] z) => (float[6] y) { y = Mod<fmod = 1>(x, z) }",
    "Mean": "g (float[3] x, float[2,3] z, float w) => (float[2,3] y) { y = Mean(x, z, w) }",
    "Max of three": "g (float[3] x, float[2,3] z, float w) => (float[2,3] y) { y = Max(x, z, w) }",
    "empty": "g (float[0,3] x) => (float[0,3] y) { y = Exp(x) }",
    "Clip": "g (float[9] x) => (float[9] y) { l = Constant<value_float = -0.5>() h = Constant<value_float = 1.0>() y = Clip(x, l, h) }",
    "Clip below": "g (float[9] x) => (float[9] y) { l = Constant<value_float = 0.1>() y = Clip(x, l) }",
    "Clip of inputs": "g (float[9] x, float l, float h) => (float[9] y) { y = Clip(x, l, h) }",
    "Clip int": "g (int32[9] x) => (int32[9] y) { l = Constant<value = int32 {-1}>() y = Clip(x, l) }",
}


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(GRAPHS)


@pytest.mark.parametrize("name", GRAPHS)
def test_agrees_with_onnx_runtime(library: Library, name: str) -> None:
    model = library.models[name].source
    low = 0.1 if name.split(maxsplit=1)[0] in ("Log", "Sqrt", "Pow") else -2
    inputs = random_inputs(model, low=low)
    if name == "Mod":
        inputs[1] = np.array([3, -3, 2, -2, 1, 5], np.int32)
    if name == "Clip of inputs":
        inputs[1:] = [np.float32(-0.25), np.float32(0.5)]
    library.check(name, inputs, rtol=1e-4)


SPECIAL = np.array([[np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-42, 3e38, -3e38]], np.float32)
NAN_GRAPHS = {
    op: f"g (float[1,8] x) => (float[1,8] y) {{ y = {op}(x) }}"
    for op in [
        "Relu",
        "Exp",
        "Log",
        "Sqrt",
        "Tanh",
        "Sigmoid",
        "Abs",
        "Neg",
        "Floor",
        "Erf",
        "LeakyRelu",
        "Softplus",
        "Reciprocal",
    ]
} | {
    "Max": "g (float[8,1] x, float[1,8] z) => (float[8,8] y) { y = Max(x, z) }",
    "Min": "g (float[8,1] x, float[1,8] z) => (float[8,8] y) { y = Min(x, z) }",
    "Clip": "g (float[1,8] x) => (float[1,8] y) { l = Constant<value_float = 0.0>() h = Constant<value_float = 6.0>() y = Clip(x, l, h) }",
}


@pytest.fixture(scope="module")
def nan_library() -> Library:
    return Library(NAN_GRAPHS, flags=("-std=c99", "-O3", "-march=native", "-ffp-contract=fast"))


@pytest.mark.parametrize("name", NAN_GRAPHS)
def test_nan_and_infinity_go_through(nan_library: Library, name: str) -> None:
    inputs = [SPECIAL.reshape(8, 1), SPECIAL] if name in ("Max", "Min") else [SPECIAL]
    nan_library.check(name, inputs)


INTEGER_GRAPHS = {
    "Div": "g (int32[5] x, int32[5] z) => (int32[5] y) { y = Div(x, z) }",
    "Add": "g (int32[5] x, int32[5] z) => (int32[5] y) { y = Add(x, z) }",
    "Mul": "g (int32[5] x, int32[5] z) => (int32[5] y) { y = Mul(x, z) }",
    "Neg": "g (int32[5] x, int32[5] z) => (int32[5] y) { y = Neg(x) }",
    "Abs": "g (int32[5] x, int32[5] z) => (int32[5] y) { y = Abs(x) }",
}
LOWEST = np.iinfo(np.int32).min


def test_integers_wrap_and_never_trap() -> None:
    library = Library(INTEGER_GRAPHS)
    x = np.array([LOWEST, 5, LOWEST, 7, -7], np.int32)
    z = np.array([-1, 0, 0, -2, -2], np.int32)
    with np.errstate(all="ignore"):
        expected = {
            "Div": np.array([LOWEST, 0, 0, -3, 3], np.int32),
            "Add": x + z,
            "Mul": x * z,
            "Neg": -x,
            "Abs": np.abs(x),
        }
    for name, want in expected.items():
        np.testing.assert_array_equal(library.run(name, [x, z])[0], want, err_msg=name)


CASTS = [
    ("float", "int32"),
    ("float", "int64"),
    ("float", "uint8"),
    ("float", "bool"),
    ("int64", "float"),
    ("double", "float"),
    ("bool", "float"),
    ("int32", "int8"),
    ("float", "double"),
]


def test_casts() -> None:
    codes = {"float": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "double": 11}
    graphs = {
        f"{a} {b}": f"g ({a}[2,6] x) => ({b}[2,6] y) {{ y = Cast<to = {codes[b]}>(x) }}"
        for a, b in CASTS
    }
    library = Library(graphs)
    for name, built in library.models.items():
        library.check(name, random_inputs(built.source, low=0.5, high=99))


def test_a_cast_of_what_no_integer_holds_is_the_lowest() -> None:
    library = Library({"c": "g (float[5] x) => (int32[5] y) { y = Cast<to = 6>(x) }"})
    x = np.array([np.nan, np.inf, -np.inf, 3e9, -2147483648.0], np.float32)
    assert library.run("c", [x])[0].tolist() == [LOWEST] * 5
