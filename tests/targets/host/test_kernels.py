"""Single operators at the edges: division by zero, NaN, infinities, empty and scalar tensors."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from smelt.errors import ErrorList
from smelt.ir import text

FLOATS = np.array(
    [-np.inf, -3.5, -2.5, -0.5, -0.0, 0.0, 0.5, 1.5, 2.5, 1e30, np.inf, np.nan], np.float32
)


def model(node: str, *types: str, opset: int = 23) -> ir.Model:
    listed = ", ".join(f"{type_} x{i}" for i, type_ in enumerate(types))
    return text.parse(f"g ({listed}) => (y) {{ {node} }}", opset=opset)


UNARY = [
    "Abs",
    "Ceil",
    "Cos",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "Log",
    "Mish",
    "Neg",
    "Reciprocal",
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
    "IsNaN",
    "IsInf",
    "Celu",
    "Gelu",
    "Shrink",
]


@pytest.mark.parametrize("op", UNARY)
def test_unary_operators_at_the_edges(agree, op: str) -> None:
    agree(model(f"y = {op}(x0)", "float[N]"), FLOATS)
    agree(model(f"y = {op}(x0)", "float"), np.float32(0.25).reshape(()))
    agree(model(f"y = {op}(x0)", "float[N]"), FLOATS[:0])


PAIRS = [
    np.array(pair)
    for pair in zip(*itertools.product([-7, -3, -1, 0, 2, 7], [-3, -2, 1, 4]), strict=True)
]


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8", "uint8"])
@pytest.mark.parametrize("op", ["Div", "Mod", "Mod<fmod=1>", "Add", "Mul", "Max", "Less"])
def test_integers_divide_towards_zero(op: str, dtype: str, compile_host) -> None:
    x, y = (np.abs(p) if dtype == "uint8" else p for p in PAIRS)
    x, y = x.astype(dtype), y.astype(dtype)
    (result,) = compile_host(model(f"y = {op}(x0, x1)", f"{dtype}[N]", f"{dtype}[N]"))(x, y)
    quotient = [int(a / b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    expected = {
        "Div": np.array(quotient),
        "Mod": np.mod(x, y),
        "Mod<fmod=1>": x - np.array(quotient, dtype) * y,
        "Add": x + y,
        "Mul": x * y,
        "Max": np.maximum(x, y),
        "Less": x < y,
    }[op]
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
def test_remainders_of_floats_have_the_sign_of_the_divisor(compile_host, dtype: str) -> None:
    """Also a remainder of zero; ONNX allows floats here from opset 28 on."""
    inf, nan = np.inf, np.nan
    x = [0.0, -0.0, 4.0, -4.0, -3.0, 3.0, -1.0, 1.0, inf, -inf, 1.0, 1.0, nan, 1.0, -5.5]
    y = [-2.0, 2.0, -2.0, 2.0, inf, inf, -inf, -inf, 2.0, 2.0, 0.0, -0.0, 2.0, nan, 2.0]
    numbers = [-0.0, 0.0, -0.0, 0.0, inf, 3.0, -1.0, -inf]
    artifact = compile_host(model("y = Mod(x0, x1)", f"{dtype}[N]", f"{dtype}[N]", opset=28))
    kind = artifact.model.graph.inputs[0].dtype.numpy()
    (result,) = artifact(np.array(x, kind), np.array(y, kind))
    np.testing.assert_array_equal(result, np.array([*numbers, *[nan] * 6, 0.5], kind))
    np.testing.assert_array_equal(np.signbit(result[: len(numbers)]), np.signbit(numbers))


@pytest.mark.parametrize(
    "op", ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Greater", "Equal"]
)
def test_binary_operators_broadcast_and_keep_nan(agree, op: str) -> None:
    agree(model(f"y = {op}(x0, x1)", "float[N,1]", "float[M]"), FLOATS[:, None], FLOATS)
    agree(model(f"y = {op}(x0, x1)", "float[N]", "float[1]"), FLOATS[:0], FLOATS[:1])


@pytest.mark.parametrize("kinds", [("int32", "int32"), ("float", "int64"), ("int64", "float")])
def test_powers_keep_the_type_of_the_base(agree, kinds: tuple[str, str]) -> None:
    names = {"float": np.float32}
    x = np.array([2, 3, -2, 5], names.get(kinds[0], kinds[0]))
    y = np.array([3, 2, 3, 0], names.get(kinds[1], kinds[1]))
    agree(model("y = Pow(x0, x1)", f"{kinds[0]}[N]", f"{kinds[1]}[N]"), x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_power_of_a_half_is_no_square_root(compile_host, dtype: type) -> None:
    """The square root of -inf is NaN and that of -0 is -0, but the powers are not.

    NumPy computes a root for a single exponent of 0.5.
    """
    kind = "float" if dtype is np.float32 else "double"
    x = np.array([[-np.inf, -0.0, 4, -4, np.inf, np.nan]], dtype)
    expected = np.array([[np.inf, 0.0, 2, np.nan, np.inf, np.nan]], dtype)
    artifact = compile_host(model("y = Pow(x0, x1)", f"{kind}[1,6]", f"{kind}[K]"))
    for exponents in (1, 6):
        (y,) = artifact(x, np.full(exponents, 0.5, dtype))
        np.testing.assert_array_equal(y, expected)
        assert not np.signbit(y[expected == 0]).any()


def test_exponents_of_a_half_beside_others(agree) -> None:
    """NumPy computes square roots where the inner loop repeats the exponent 0.5."""
    x = np.array([-np.inf, -0.0, 4, -4, np.inf, np.nan], np.float32)
    for exponents in ([[0.5], [0.5]], [[0.5], [2]], [[0.5, 2, 0.5, 3, 0.5, 0.5]]):
        y = np.array(exponents, np.float32)
        agree(model("y = Pow(x0, x1)", "float[6]", f"float[{y.shape[0]},{y.shape[1]}]"), x, y)


def test_a_negative_power_leaves_large_integers_exact(compile_host) -> None:
    artifact = compile_host(model("y = Pow(x0, x1)", "int64[N]", "int64[N]"))
    (y,) = artifact(np.array([2**60 + 1, 2, -1, 1]), np.array([1, -1, -3, -2]))
    assert y.tolist() == [2**60 + 1, 0, -1, 1]


CLIPS = {
    "both": (
        "lo = Constant<value_float=-1.0>() hi = Constant<value_float=2.0>() y = Clip(x0, lo, hi)",
        [-1, -1, -1, -0.5, -0.0, 0, 0.5, 1.5, 2, 2, 2, np.nan],
    ),
    "crossed": (
        "lo = Constant<value_float=2.0>() hi = Constant<value_float=-1.0>() y = Clip(x0, lo, hi)",
        [*[-1] * 11, np.nan],
    ),
    "upper": (
        "hi = Constant<value_float=2.0>() y = Clip(x0, , hi)",
        [-np.inf, -3.5, -2.5, -0.5, -0.0, 0, 0.5, 1.5, 2, 2, 2, np.nan],
    ),
    "none": ("y = Clip(x0)", FLOATS),
}


@pytest.mark.parametrize(("node", "expected"), CLIPS.values(), ids=CLIPS.keys())
def test_clip(compile_host, node: str, expected: list[float]) -> None:
    """An absent bound does not bound, as in ONNX's function body of Clip."""
    (result,) = compile_host(model(node, "float[N]"))(FLOATS)
    np.testing.assert_array_equal(result, np.asarray(expected, np.float32))


def test_clip_with_bounds_of_the_run(agree) -> None:
    graph = model("y = Clip(x0, x1, x2)", "float[N]", "float", "float")
    agree(graph, FLOATS, np.float32(-1).reshape(()), np.float32(1).reshape(()))


CASTS = [
    ("float", 6),
    ("float", 9),
    ("float", 10),
    ("float", 16),
    ("int64", 1),
    ("bool", 1),
    ("float16", 16),
]


@pytest.mark.parametrize(("source", "target"), CASTS)
def test_casts(agree, source: str, target: int) -> None:
    kind = {"float": np.float32, "bool": np.bool_}.get(source, source)
    x = np.array([-2.7, -0.5, 0, 0.5, 2.7, 100.3], np.float32).astype(kind)
    back = "" if target != 16 else "b = Cast<to=1>(y)"
    graph = f"g ({source}[N] x0) => ({'b' if back else 'y'}) {{ y = Cast<to={target}>(x0) {back} }}"
    agree(graph, x)


REDUCTIONS = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"]


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize(("axes", "keepdims"), [("[1]", 0), ("[0,2]", 1), ("[-1]", 1)])
def test_reductions(agree, op: str, axes: str, keepdims: int) -> None:
    x = np.random.default_rng(0).uniform(0.1, 2, (2, 3, 4)).astype(np.float32)
    node = f"a = Constant<value_ints={axes}>() y = Reduce{op}<keepdims={keepdims}>(x0, a)"
    agree(model(node, "float[2,3,4]"), x)
    agree(model(f"y = Reduce{op}(x0)", "float[2,3,4]"), x)


@pytest.mark.parametrize(
    ("op", "identity"), [("Sum", 0), ("Prod", 1), ("Max", -np.inf), ("Min", np.inf)]
)
def test_empty_reductions_give_the_identity(compile_host, op: str, identity: float) -> None:
    node = f"a = Constant<value_ints=[1]>() y = Reduce{op}<keepdims=0>(x0, a)"
    (result,) = compile_host(model(node, "float[2,0]"))(np.zeros((2, 0), np.float32))
    np.testing.assert_array_equal(result, [identity, identity])


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax_of_large_numbers_and_masks(agree, op: str) -> None:
    x = np.array([[1e4, 1e4, -1e4], [-np.inf, 0, 1], [3, 2, 1]], np.float32)
    agree(model(f"y = {op}(x0)", "float[3,3]"), x)
    agree(model(f"y = {op}<axis=0>(x0)", "float[3,3]"), x)


def test_softmax_of_old_opsets_normalizes_over_several_dims(compile_host) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    graph = model("y = Softmax<axis=1>(x0)", "float[2,3,4]", opset=11)
    (result,) = compile_host(graph)(x)
    np.testing.assert_allclose(result.sum((1, 2)), 1, rtol=1e-6)


SLICES = [
    "[1],[3],[0],[1]",
    "[-1],[-9],[1],[-1]",
    "[5],[0],[1],[-2]",
    "[0],[99],[-1],[2]",
    "[3],[1],[0],[1]",
]


@pytest.mark.parametrize("bounds", SLICES)
def test_slices(agree, bounds: str) -> None:
    parts = bounds.replace("],[", "] [").split()
    names = ("s", "e", "a", "t")
    constants = " ".join(
        f"{n} = Constant<value_ints={p}>()" for n, p in zip(names, parts, strict=True)
    )
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    agree(model(f"{constants} z = Slice(x0, s, e, a, t) y = Neg(z)", "float[4,6]"), x)
    agree(model(f"{constants} y = Slice(x0, s, e, a, t)", "float[N,6]"), x)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", ["[0,1,2,1]", "[1,0,0,0]"])
def test_pads(agree, mode: str, pads: str) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    agree(
        model(f'p = Constant<value_ints={pads}>() y = Pad<mode="{mode}">(x0, p)', "float[3,4]"), x
    )


def test_negative_pads_crop(compile_host) -> None:
    node = "p = Constant<value_ints=[-1,1,0,-2]>() y = Pad(x0, p)"
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    (result,) = compile_host(model(node, "float[3,4]"))(x)
    np.testing.assert_array_equal(result, np.pad(x[1:, :2], [(0, 0), (1, 0)]))


MATMULS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (4, 3, 2)),
    ((5, 1, 2, 3), (4, 3, 2)),
    ((2, 3), (5, 4, 3, 2)),
    ((2, 0), (0, 3)),
    ((1, 2, 3), (4, 3, 1)),
    ((0, 2, 3), (3, 2)),
]


@pytest.mark.parametrize(("lhs", "rhs"), MATMULS)
def test_matmul_broadcasts_its_batch(agree, lhs: tuple[int, ...], rhs: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in (lhs, rhs))
    types = [f"float[{','.join(map(str, shape))}]" for shape in (lhs, rhs)]
    agree(model("y = MatMul(x0, x1)", *types), x, y)


@pytest.mark.parametrize(
    "flags",
    ["", "<transA=1>", "<transB=1>", "<transA=1, transB=1, alpha=0.5, beta=2.0>", "<beta=0.0>"],
)
def test_gemm(agree, flags: str) -> None:
    rng = np.random.default_rng(0)
    x, y, c = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 3), (3, 3), (3,)))
    agree(model(f"y = Gemm{flags}(x0, x1, x2)", "float[3,3]", "float[3,3]", "float[3]"), x, y, c)
    agree(model(f"y = Gemm{flags}(x0, x1)", "float[3,3]", "float[3,3]"), x, y)


EQUATIONS = [
    "ij,jk->ik",
    "ij,jk",
    "bij,bkj->bki",
    "i,j->ji",
    "ij,ij->",
    "ij->ji",
    "ijk->j",
    "...ij,...jk->...ik",
    "ij,kj,kl->il",
]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(agree, equation: str) -> None:
    terms = equation.split("->", maxsplit=1)[0].split(",")
    arrays = [
        np.random.default_rng(i)
        .standard_normal((3,) * len(t.replace("...", "b")))
        .astype(np.float32)
        for i, t in enumerate(terms)
    ]
    types = [f"float[{','.join(['3'] * a.ndim)}]" for a in arrays]
    names = ", ".join(f"x{i}" for i in range(len(arrays)))
    agree(model(f'y = Einsum<equation="{equation}">({names})', *types), *arrays)


CONVS = {
    "one dim": ("Conv<pads=[2,0], dilations=[2]>", (2, 3, 9), (4, 3, 3)),
    "three dims": ("Conv<strides=[1,2,1]>", (1, 2, 4, 5, 4), (3, 2, 2, 2, 2)),
    "depthwise": ("Conv<group=4, pads=[1,1,1,1]>", (2, 4, 5, 5), (8, 1, 3, 3)),
    "same lower": ('Conv<auto_pad="SAME_LOWER", strides=[2,2]>', (1, 1, 6, 5), (1, 1, 4, 4)),
    "pixels": ("Conv", (2, 3, 4, 4), (5, 3, 1, 1)),
    "strided pixels": ("Conv<strides=[2,2]>", (2, 3, 5, 5), (5, 3, 1, 1)),
    "no samples": ("Conv", (0, 3, 4, 4), (5, 3, 1, 1)),
    "transposed": (
        "ConvTranspose<strides=[2,2], pads=[1,0,0,1], group=2>",
        (2, 4, 3, 3),
        (4, 3, 3, 3),
    ),
}


@pytest.mark.parametrize(("node", "x", "w"), CONVS.values(), ids=CONVS.keys())
def test_convolutions(agree, node: str, x: tuple[int, ...], w: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    types = [f"float[{','.join(map(str, shape))}]" for shape in (x, w)]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in (x, w)]
    agree(model(f"y = {node}(x0, x1)", *types), *arrays)


POOLS = [
    "MaxPool<kernel_shape=[3,2], strides=[2,2], ceil_mode=1>",
    "MaxPool<kernel_shape=[2,2], dilations=[2,1], pads=[1,1,1,1]>",
    "AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>",
    "AveragePool<kernel_shape=[3,3], pads=[1,0,1,1], count_include_pad=1>",
    "AveragePool<kernel_shape=[2,2], strides=[3,3], ceil_mode=1>",
    "LpPool<kernel_shape=[2,2], p=1>",
    "LpPool<kernel_shape=[3,2], pads=[1,1,0,1], p=3>",
    "GlobalMaxPool",
    "GlobalAveragePool",
]


@pytest.mark.parametrize(("dtype", "least"), [("uint8", 0), ("int8", -128), ("float", -np.inf)])
@pytest.mark.parametrize("attributes", ["dilations=[2,2]", "strides=[2,1], storage_order=1"])
def test_the_index_of_a_maximum_is_never_in_the_padding(agree, dtype, least, attributes) -> None:
    node = f"y, i = MaxPool<kernel_shape=[2,2], pads=[1,1,1,1], {attributes}>(x)"
    graph = f"g ({dtype}[1,2,5,4] x) => ({dtype}[a,b,c,d] y, int64[a,b,c,d] i) {{ {node} }}"
    x = np.full((1, 2, 5, 4), least, np.dtype({"float": "float32"}.get(dtype, dtype)))
    x[0, 1, 2, 1:3] = 3
    agree(text.parse(graph, 13), x)


@pytest.mark.parametrize("node", POOLS)
def test_pools(agree, node: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 7, 6)).astype(np.float32) - 3
    agree(model(f"y = {node}(x0)", "float[2,3,7,6]"), x)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    "node",
    [
        "y = MatMul(x0, x0)",
        "y = Softmax(x0)",
        "y = ReduceMean(x0)",
        "y = Gelu(x0)",
        "y = Add(x0, x0)",
        "y = LayerNormalization(x0, x0)",
    ],
)
def test_half_floats_are_rounded_once(compile_host, node: str, dtype: type) -> None:
    name = ir.DataType.from_numpy(np.dtype(dtype)).name.lower()
    x = np.random.default_rng(0).standard_normal((32, 32)).astype(dtype)
    if "Layer" in node:
        node = "g = Constant<value_float=1.0>() c = CastLike(g, x0) s = Constant<value_ints=[32]>() w = Expand(c, s) y = LayerNormalization(x0, w)"
    (narrow,) = compile_host(model(node, f"{name}[32,32]"))(x)
    (wide,) = compile_host(model(node, "float[32,32]"))(x.astype(np.float32))
    assert narrow.dtype == dtype
    np.testing.assert_array_equal(narrow, wide.astype(dtype))


def test_misfitting_groups_are_refused(compile_host) -> None:
    graph = model("y = Conv<group=2>(x0, x1)", "float[1,4,3,3]", "float[3,2,1,1]")
    with pytest.raises(ErrorList, match="3 filters") as caught:
        compile_host(graph)
    assert caught.value.code == "E202"
