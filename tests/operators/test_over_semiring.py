"""One model of sums and products, computed over any algebra: eagerly, on host and in C."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnx_ir as ir
import pytest

import smelt
from smelt.errors import ErrorList, UsageError
from smelt.ir import text
from smelt.operators.semiring import Semiring, semiring_of
from smelt.program.lower import lower

ALGEBRAS = ["max_plus", "min_plus", "max_times", "max_min", "log_sum_exp", "Max,Mul,0,1"]
HEAD = '<ir_version: 10, opset_import: ["" : 20]>'


def network(a, b, c):
    """Every operator that an algebra has, and what moves elements between."""
    product = (a @ b) * c
    other = jnp.einsum("bij,jk->bik", a, b)[:, :, ::-1]
    return (product + other + c).sum(1) + b[0], jnp.transpose(product).sum((0, 2), keepdims=True)


def by_hand(algebra: Semiring, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
    def plus(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return algebra.sum(np.stack(np.broadcast_arrays(x, y)), (0,))

    matmul = algebra.sum(algebra.combine(a[..., None], b), (2,))
    product = algebra.combine(matmul, c)
    total = algebra.sum(plus(plus(product, matmul[:, :, ::-1]), c), (1,))
    first = plus(total, b[0])
    return [first, algebra.sum(product.T, (0, 2))[None, :, None]]


def inputs() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.random(shape, np.float32) for shape in ((2, 4, 5), (5, 3), (3,))]


@pytest.fixture(scope="module")
def model() -> ir.Model:
    return smelt.trace(network, "f32[2,4,5]", "f32[5,3]", "f32[3]")


@pytest.mark.parametrize("name", ALGEBRAS)
def test_the_eager_run_and_numpy_agree(model: ir.Model, name: str) -> None:
    over = smelt.over_semiring(model, name)
    expected = by_hand(semiring_of(name), *inputs())
    eager = smelt.run_program(lower(over), *inputs())
    planned = smelt.compile(over, target="host", engine="numpy")(*inputs())
    for one, other, wanted in zip(eager, planned, expected, strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-5)
        np.testing.assert_allclose(other, wanted, rtol=1e-5)


def test_a_model_may_be_a_file_or_a_proto(model: ir.Model, tmp_path: Path) -> None:
    smelt.save(model, tmp_path / "model.onnx")
    wanted = smelt.over_semiring(smelt.load(tmp_path / "model.onnx"), "max_plus")
    of_file = smelt.over_semiring(tmp_path / "model.onnx", "max_plus")
    of_proto = smelt.over_semiring(smelt.to_proto(model), "max_plus")
    assert isinstance(of_proto, onnx.ModelProto)
    assert text.canonical(of_file) == text.canonical(wanted)
    in_line = smelt.load(smelt.to_proto(wanted))
    assert text.canonical(smelt.load(of_proto)) == text.canonical(in_line)


@pytest.mark.slow  # compiles C
@pytest.mark.parametrize("name", ALGEBRAS)
@pytest.mark.parametrize("options", [{"target": "c"}, {"target": "host", "engine": "native"}])
def test_c_agrees(model: ir.Model, name: str, options: dict[str, str]) -> None:
    compiled = smelt.compile(smelt.over_semiring(model, name), **options)  # type: ignore[arg-type]
    for found, wanted in zip(
        compiled(*inputs()), by_hand(semiring_of(name), *inputs()), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_sums_and_products_of_numbers_stay(model: ir.Model) -> None:
    for found, wanted in zip(
        smelt.compile(smelt.over_semiring(model, "sum_product"), engine="numpy", target="host")(
            *inputs()
        ),
        network(*map(jax.device_put, inputs())),
        strict=True,
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_truths() -> None:
    model = text.parse(
        f"{HEAD} g (bool[3,3] a, bool[3,3] b) => (bool[3,3] y) {{ c = MatMul(a, b) y = Add(c, a) }}"
    )
    step = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], bool)
    (y,) = smelt.run_program(lower(smelt.over_semiring(model, "or_and")), step, step)
    assert y.tolist() == [[False, True, True], [False, False, True], [False] * 3]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((4,), (4,)),
        ((4,), (4, 2)),
        ((3, 4), (4,)),
        ((1, 3, 4), (5, 4, 2)),
        ((5, 1, 3, 4), (7, 4, 2)),
    ],
)
def test_products_of_any_ranks(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    dims = [",".join(map(str, shape)) for shape in (left, right)]
    model = text.parse(
        f"{HEAD} g (double[{dims[0]}] a, double[{dims[1]}] b) => (y) {{ y = MatMul(a, b) }}"
    )
    a, b = (np.random.default_rng(0).random(shape) for shape in (left, right))
    (y,) = smelt.run_program(lower(smelt.over_semiring(model, "min_plus")), a, b)
    rows, columns = np.atleast_2d(a), b if b.ndim > 1 else b[:, None]
    expected = (rows[..., :, :, None] + columns[..., None, :, :]).min(-2)
    np.testing.assert_allclose(y, expected.reshape(np.matmul(a, b).shape))


@pytest.mark.parametrize("axes", ["", ", axes"])
def test_an_empty_sum_is_the_zero_of_the_algebra(axes: str) -> None:
    given = "axes = Constant <value_ints: ints = [0, 1]> () " if axes else ""
    model = text.parse(
        f"{HEAD} g (float[2,0] x) => (float y) {{ {given}y = ReduceSum <keepdims: int = 0> (x{axes}) }}"
    )
    x = np.zeros((2, 0), np.float32)
    for name, zero in (("max_plus", -np.inf), ("min_plus", np.inf), ("Max,Mul,0,1", 0)):
        assert smelt.run_program(lower(smelt.over_semiring(model, name)), x)[0] == zero


def test_no_axes_mean_all_or_none_as_the_node_says() -> None:
    for nothing, expected in ((0, 3.0), (1, [[1.0, 3.0]])):
        model = text.parse(
            f"{HEAD} g (float[1,2] x) => (y) "
            f"{{ y = ReduceSum <keepdims: int = 0, noop_with_empty_axes: int = {nothing}> (x) }}"
        )
        x = np.array([[1, 3]], np.float32)
        (y,) = smelt.run_program(lower(smelt.over_semiring(model, "max_plus")), x)
        assert y.tolist() == expected


@pytest.mark.parametrize("opset", [11, 17, 21])
def test_a_model_of_any_opset_whose_result_is_its_input(opset: int) -> None:
    axes = "<axes: ints = [-1], keepdims: int = 0> (s)"
    if opset >= 13:
        axes = "<keepdims: int = 0> (s, axis)"
    model = text.parse(
        f'<ir_version: 7, opset_import: ["" : {opset}]> g (float[3,4] x, float[4] c) '
        "=> (float[1,3] y, float[3,4] s) { "
        "axis = Constant <value = int64[1] {-1}> () s = Add(x, c) "
        f"sums = ReduceSum {axes} row = Constant <value = float[1,3] {{0, 0, 0}}> () "
        "y = Mul(row, sums) }"
    )
    x, c = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    y, s = smelt.compile(smelt.over_semiring(model, "min_plus"), target="host")(x, c[0])
    np.testing.assert_array_equal(s, np.minimum(x, c[0]))
    np.testing.assert_array_equal(y, s.min(-1)[None])


def test_the_model_stays_as_it_is(model: ir.Model) -> None:
    before = [node.op_type for node in model.graph]
    smelt.over_semiring(model, "max_plus")
    assert [node.op_type for node in model.graph] == before


def test_undefined_operators_are_reported_together() -> None:
    model = smelt.trace(lambda x: jnp.exp(x) - x, "f32[3]")
    with pytest.raises(ErrorList) as caught:
        smelt.over_semiring(model, "max_plus")
    assert [error.code for error in caught.value.errors] == ["E659", "E659"]
    with pytest.raises(ErrorList, match="not defined on float"):
        smelt.over_semiring(smelt.trace(lambda x: x + x, "f32[3]"), "or_and")
    with pytest.raises(UsageError, match="E657"):
        smelt.over_semiring(model, "no,such,0,1")
