"""``smelt.DotGeneral``: types, meaning over each semiring, and its ONNX body."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt import operators
from smelt.errors import ErrorList, InvalidModel
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.dot_general import OPERATOR, infer
from smelt.program.lower import lower
from smelt.runtime.runner import run

DEFAULTS = {attribute.name: attribute.default for attribute in OPERATOR.attributes}


def dot(lhs: np.ndarray, rhs: np.ndarray, **attributes: object) -> np.ndarray:
    (result,) = OPERATOR.reference((lhs, rhs), {**DEFAULTS, **attributes})
    return result


@st.composite
def contractions(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, dict[str, tuple[int, ...]], str]:
    """Operands of small integers, dimension numbers in any order, and the einsum they mean."""
    counts = [draw(st.integers(0, 2)) for _ in range(4)]
    names = iter("abcdefgh")
    batch, summed, left_free, right_free = ([next(names) for _ in range(n)] for n in counts)
    sizes = {
        name: draw(st.integers(0, 3)) for g in (batch, summed, left_free, right_free) for name in g
    }
    left = draw(st.permutations([*batch, *summed, *left_free]))
    right = draw(st.permutations([*batch, *summed, *right_free]))
    attributes = {
        "lhs_contracting": tuple(left.index(n) for n in summed),
        "rhs_contracting": tuple(right.index(n) for n in summed),
        "lhs_batch": tuple(left.index(n) for n in batch),
        "rhs_batch": tuple(right.index(n) for n in batch),
    }
    free = [n for n in left if n in left_free] + [n for n in right if n in right_free]
    equation = f"{''.join(left)},{''.join(right)}->{''.join([*batch, *free])}"
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    arrays = [
        rng.integers(-4, 5, [sizes[n] for n in term]).astype(np.float32) for term in (left, right)
    ]
    return arrays[0], arrays[1], attributes, equation


@settings(max_examples=60, deadline=None)
@given(contractions())
def test_sum_product_is_the_einsum_of_its_dims(case) -> None:
    lhs, rhs, attributes, equation = case
    expected = np.einsum(equation, lhs, rhs)
    result = dot(lhs, rhs, **attributes)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)
    values = [
        ir.Value(name=n, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(a.shape))
        for n, a in (("lhs", lhs), ("rhs", rhs))
    ]
    (inferred,) = infer(values, {**DEFAULTS, **attributes})
    assert inferred.dtype == ir.DataType.FLOAT
    assert tuple(inferred.shape) == expected.shape


@pytest.mark.parametrize(
    ("semiring", "expected"),
    [
        ("sum_product", [[19, 22], [43, 50]]),
        ("max_plus", [[9, 10], [11, 12]]),
        ("min_plus", [[6, 7], [8, 9]]),
    ],
)
def test_each_semiring(semiring: str, expected: list[list[int]]) -> None:
    lhs, rhs = np.array([[1.0, 2], [3, 4]]), np.array([[5.0, 6], [7, 8]])
    result = dot(lhs, rhs, lhs_contracting=(1,), rhs_contracting=(0,), semiring=semiring)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("semiring", "dtype", "identity"),
    [
        ("sum_product", np.float32, 0),
        ("max_plus", np.float32, -np.inf),
        ("min_plus", np.float64, np.inf),
        ("max_plus", np.int32, -(2**31)),
        ("min_plus", np.int64, 2**63 - 1),
    ],
)
def test_an_empty_sum_is_the_identity(semiring: str, dtype: type, identity: float) -> None:
    result = dot(
        np.zeros((2, 0), dtype),
        np.zeros((0, 3), dtype),
        lhs_contracting=(1,),
        rhs_contracting=(0,),
        semiring=semiring,
    )
    assert result.dtype == dtype
    assert result.shape == (2, 3)
    assert np.all(result == identity)


@pytest.mark.parametrize(
    ("inputs", "output"),
    [(np.int8, np.int32), (np.float16, np.float32), (ml_dtypes.bfloat16, np.float32)],
)
def test_the_preferred_type_is_what_sums_are_kept_in(inputs: type, output: type) -> None:
    count = 300
    lhs, rhs = np.full((1, count), 100, inputs), np.full((count, 1), 100, inputs)
    dtype = int(ir.DataType.from_numpy(np.dtype(output)))
    result = dot(lhs, rhs, lhs_contracting=(1,), rhs_contracting=(0,), dtype=dtype)
    assert result.dtype == output
    assert result.item() == 100 * 100 * count


def test_16_bit_floats_are_summed_in_32_bits() -> None:
    ones = np.ones((1, 4096), np.float16)
    result = dot(ones, ones, lhs_contracting=(1,), rhs_contracting=(1,))
    assert result.dtype == np.float16
    assert result.item() == 4096


WRONG = {
    "counts differ": "smelt.DotGeneral<lhs_contracting=[1]>(x, y)",
    "out of range": "smelt.DotGeneral<lhs_contracting=[2], rhs_contracting=[0]>(x, y)",
    "twice": "smelt.DotGeneral<lhs_contracting=[1,1], rhs_contracting=[0,1]>(x, y)",
    "contracting and batch": "smelt.DotGeneral<lhs_contracting=[1], rhs_contracting=[0], lhs_batch=[1], rhs_batch=[1]>(x, y)",
    "sizes differ": "smelt.DotGeneral<lhs_contracting=[0], rhs_contracting=[0]>(x, y)",
    "no semiring": 'smelt.DotGeneral<lhs_contracting=[1], rhs_contracting=[0], semiring="max_over">(x, y)',
    "numbers are no truths": 'smelt.DotGeneral<lhs_contracting=[1], rhs_contracting=[0], semiring="or_and">(x, y)',
}


@pytest.mark.parametrize("node", WRONG.values(), ids=WRONG.keys())
def test_refuses_dims_that_cannot_be(node: str) -> None:
    model = text.parse(f"g (float[2,3] x, float[3,4] y) => (z) {{ z = {node} }}")
    with pytest.raises(InvalidModel) as caught:
        ShapeInference(model).infer_model()
    assert caught.value.code == "E317"
    assert caught.value.why


@pytest.mark.parametrize("node", WRONG.values(), ids=WRONG.keys())
def test_lowering_refuses_them_in_a_model_that_nobody_checked(node: str) -> None:
    model = text.parse(f"g (float[2,3] x, float[3,4] y) => (float[2,4] z) {{ z = {node} }}")
    with pytest.raises(ErrorList, match="E201") as caught:
        lower(model)
    assert caught.value.errors[0].why


def test_an_unknown_attribute_is_an_error() -> None:
    model = text.parse("g (float[2,3] x) => (z) { z = smelt.DotGeneral<precision=1>(x, x) }")
    with pytest.raises(InvalidModel, match="no attribute 'precision'") as caught:
        OPERATOR.attributes_of(next(iter(model.graph)))
    assert caught.value.code == "E330"


BODIES = {
    "matrix": "smelt.DotGeneral<lhs_contracting=[2], rhs_contracting=[1]>(x, y)",
    "batched": "smelt.DotGeneral<lhs_contracting=[2], rhs_contracting=[1], lhs_batch=[0], rhs_batch=[0]>(x, y)",
    "outer": "smelt.DotGeneral(x, y)",
    "max_plus": 'smelt.DotGeneral<lhs_contracting=[0,2], rhs_contracting=[0,1], semiring="max_plus">(x, y)',
    "min_plus, batched": 'smelt.DotGeneral<lhs_contracting=[2], rhs_contracting=[1], lhs_batch=[0], rhs_batch=[0], semiring="min_plus">(x, y)',
    "wide result": "smelt.DotGeneral<lhs_contracting=[2], rhs_contracting=[1], dtype=11>(x, y)",
}


# A conversion of the result makes sense from float only.
TYPED = [
    (n, t) for n in BODIES for t in ("float", "int8", "uint32") if t == "float" or "wide" not in n
]


@pytest.mark.parametrize(("name", "dtype"), TYPED)
def test_the_body_computes_what_the_reference_does(name: str, dtype: str) -> None:
    source = f"g ({dtype}[2,3,4] x, {dtype}[2,4,5] y) => (z) {{ z = {BODIES[name]} }}"
    model = text.parse(source)
    ShapeInference(model).infer_model()
    rng = np.random.default_rng(1)
    kind = model.graph.inputs[0].dtype.numpy()
    x, y = (rng.integers(0, 9, shape).astype(kind) for shape in ((2, 3, 4), (2, 4, 5)))
    node = next(iter(model.graph))
    (expected,) = OPERATOR.reference((x, y), OPERATOR.attributes_of(node))
    assert operators.expand(model) == 1
    assert all(not inner.domain for inner in model.graph)
    (result,) = run(model, (x, y))
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)
