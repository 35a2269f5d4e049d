"""Counting factors gives the shapes that the library finds with SymPy, or leaves the Reshape to it."""

import itertools
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import pytest
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.shapes.reshape_shapes import exact_quotient, quotient, reshaped

Dims = tuple[int | ir.SymbolicDim, ...]
N, M = ir.SymbolicDim("N"), ir.SymbolicDim("M")


@pytest.mark.parametrize(
    ("dims", "others", "size"),
    [
        ((N, 12), (N, 3), 4),
        ((N, M, 4), (2,), "2*M*N"),
        ((N, M, 4), (N, 4), "M"),
        ((), (), 1),
        ((2, 3), (2, 3), 1),
    ],
)
def test_the_quotient_is_a_number_or_a_product_of_names(
    dims: Dims, others: Dims, size: int | str
) -> None:
    assert quotient(dims, others) == size


@pytest.mark.parametrize(
    ("dims", "others"),
    [
        ((N, 3), (2,)),
        ((N,), (M,)),
        ((N, N), ()),
        ((0, 4), (4,)),
        ((4, N), (0,)),
        ((4,), (-2, -2)),
        ((ir.SymbolicDim("N + 1"), 2), ()),
    ],
)
def test_other_quotients_are_left_to_the_library(dims: Dims, others: Dims) -> None:
    assert quotient(dims, others) is None


@pytest.mark.parametrize(
    ("dims", "others", "size"),
    [
        ((ir.SymbolicDim("24*N + 96"),), (ir.SymbolicDim("N + 4"),), 24),
        ((ir.SymbolicDim("24*N + 6"),), (ir.SymbolicDim("4*N + 1"),), 6),
        ((ir.SymbolicDim("N + 4"), 24), (24,), "N + 4"),
        ((ir.SymbolicDim("N**2 + N"),), (N,), "N + 1"),
        ((ir.SymbolicDim("N**2 + N"),), (2,), None),
        ((ir.SymbolicDim("N + 1"),), (N,), None),
        ((ir.SymbolicDim("floor(N/2)"), 2), (), None),
        ((N,), (0,), None),
        ((ir.SymbolicDim(None),), (2,), None),
    ],
)
def test_an_exact_quotient_has_no_floor(dims: Dims, others: Dims, size: int | str | None) -> None:
    assert exact_quotient(dims, others) == size


def test_rows_that_were_padded_are_reshaped_to_themselves() -> None:
    model = ir.from_onnx_text(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[N,6,4] x) => (float[A,B] y, float[C,D] r) '
        "<int64[6] pads = {1, 0, 0, 3, 0, 0}, int64[1] hole = {-1}, int64[2] odd = {-1, 5}> "
        "{ c = Pad(x, pads) n = Shape<start=0, end=1>(c) "
        "to = Concat<axis=0>(n, hole) y = Reshape(c, to) r = Reshape(c, odd) }"
    )
    ShapeInference(model).infer_model()
    values = {value.name: value.shape for node in model.graph for value in node.outputs}
    assert values["y"] == ["N + 4", 24]
    assert "floor" in str(values["r"])


def test_a_zero_keeps_a_dim_that_is_there() -> None:
    assert reshaped((N, 4, 6), (0, -1)) == [N, 24]
    assert reshaped((N, 4), (1, 1, 0)) is None
    assert reshaped((0, 4), (0, 2, 2)) == [0, 2, 2]


def test_it_agrees_with_the_library_wherever_it_answers() -> None:
    ShapeInference(ir.Model(ir.Graph([], [], nodes=[], opset_imports={"": 20}), ir_version=10))
    answered = 0
    for dims in itertools.product(("B", "a1", 1, 6), (2, "S"), (3, "B")):
        for target in itertools.product((-1, 0, 1, 2), (-1, 0, 3), (-1, 0, 2)):
            ours = reshaped(ir.Shape(dims).dims, target)
            if target.count(-1) < 2 and ours is not None:
                answered += 1
                assert [str(dim) for dim in ours] == _by_library(dims, target), (dims, target)
    assert answered > 100


def _by_library(dims: Sequence[int | str], target: Sequence[int]) -> list[str]:
    from onnx_shape_inference._ops._reshape import infer_reshape

    x = ir.Value(name="x", shape=ir.Shape(dims), type=ir.TensorType(ir.DataType.FLOAT))
    to = ir.Value(name="to", const_value=ir.Tensor(np.array(target, np.int64)))
    node = ir.Node("", "Reshape", [x, to])
    infer_reshape(ShapeInferenceContext({"": 20}), node)
    result = node.outputs[0].shape
    assert result is not None
    return [str(dim) for dim in result]


def test_a_clamped_size_is_the_whole_one_if_no_element_is_lost() -> None:
    """GPT-Neo merges heads by the size of a mask that is cut to 64 positions."""
    source = (
        "g (float[B,S,2,8] x, float[B,M,2,8] z) => () { b = Shape<start=0, end=1>(x) "
        "s = Shape<start=1, end=2>(x) most = Constant<value_ints=[64]>() "
        "c = Min(s, most) h = Constant<value_ints=[16]>() t = Concat<axis=0>(b, c, h) "
        "u = Concat<axis=0>(b, b, h) y = Reshape(x, t) w = Reshape(z, t) v = Reshape(x, u) }"
    )
    model = text.parse(source)
    ShapeInference(model).infer_model()
    shapes = {v.name: v.shape for n in model.graph for v in n.outputs}
    assert shapes["y"] == ["B", "S", 16]
    assert shapes["w"] == ["B", "Min(S, 64)", 16]
    assert shapes["v"] == ["B", "B", 16]
