"""Which values are constants, and what may be read of them."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from smelt.ir import text
from smelt.ir.constants import Constants, is_constant
from smelt.ir.shapes.inference import ShapeInference


def last_value(body: str, dtype: str = "float[2,3]") -> ir.Value:
    model = text.parse(f"g ({dtype} x, float[N,3] n) => () {{ {body} }}")
    ShapeInference(model).infer_model()
    return model.graph[-1].outputs[0]


KNOWN = {
    "a Constant": ("y = Constant<value = float[2] {1.0, 2.0}>()", [1.0, 2.0]),
    "a Constant of ints": ("y = Constant<value_ints=[3, 4]>()", [3, 4]),
    "a Constant of one float": ("y = Constant<value_float=0.5>()", 0.5),
    "through Identity": ("a = Constant<value_int=7>() y = Identity(a)", 7),
    "through a Cast that keeps the value": ("a = Constant<value_int=7>() y = Cast<to=1>(a)", 7.0),
    "through Reshape": (
        "a = Constant<value_ints=[1,2]>() s = Constant<value_ints=[2,1]>() y = Reshape(a, s)",
        [[1], [2]],
    ),
    "through Unsqueeze": (
        "a = Constant<value_int=7>() s = Constant<value_ints=[0]>() y = Unsqueeze(a, s)",
        [7],
    ),
    "Shape of a static shape": ("y = Shape(x)", [2, 3]),
    "Shape of the static end of a symbolic shape": ("y = Shape<start=1>(n)", [3]),
}


@pytest.mark.parametrize(("body", "expected"), KNOWN.values(), ids=KNOWN.keys())
def test_known(body: str, expected: object) -> None:
    array = Constants().get(last_value(body))
    assert array is not None
    np.testing.assert_array_equal(array, np.asarray(expected))
    assert not array.flags.writeable


UNKNOWN = {
    "an input": "y = Identity(x)",
    "Shape with a symbolic dim": "y = Shape(n)",
    "a Cast that overflows": "a = Constant<value_int=300>() y = Cast<to=3>(a)",
    "a Cast of NaN to an integer": "a = Constant<value = float {nan}>() y = Cast<to=7>(a)",
    "a computation": "a = Constant<value_float=1.0>() y = Neg(a)",
}


@pytest.mark.parametrize("body", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_unknown(body: str) -> None:
    assert Constants().get(last_value(body)) is None


def test_large_constants_are_read_on_request_only() -> None:
    value = ir.Value(name="w", const_value=ir.Tensor(np.zeros(100_000, np.float32)))
    ir.Graph([], [], nodes=[], initializers=[value])
    constants = Constants()
    assert constants.get(value) is None
    assert constants.get(value, limit=None) is not None
    assert constants.get(value) is None
    assert is_constant(value)


def test_scalars_and_ints() -> None:
    constants = Constants()
    assert constants.scalar(last_value("y = Constant<value = float[1,1] {2.5}>()")) == 2.5
    assert constants.scalar(last_value("y = Constant<value_floats=[1.0, 2.0]>()")) is None
    assert constants.ints(last_value("y = Constant<value_ints=[1, -1]>()")) == (1, -1)
    assert constants.ints(last_value("y = Constant<value_float=1.0>()")) is None
    assert constants.get(None) is None


@pytest.mark.parametrize("source_is_read", [False, True])
@pytest.mark.parametrize(("limit", "known"), [(None, True), (16, True), (15, False)])
def test_arrays_of_more_bytes_than_the_limit_are_not_read(
    limit: int | None, known: bool, source_is_read: bool
) -> None:
    value, constants = last_value(KNOWN["through Reshape"][0]), Constants()
    node = value.producer()
    assert node is not None
    if source_is_read:
        assert constants.get(node.inputs[0]) is not None
    assert (constants.get(value, limit) is not None) is known
    assert constants.get(value) is not None  # which keeps the array
    assert (constants.get(value, limit) is not None) is known
