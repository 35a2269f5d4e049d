"""A shape rule gives results of unknown shape for operands of unknown shape."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.operators.declare import Operator, Result
from smelt.operators.registry import OPERATORS

TYPES = (ir.DataType.FLOAT, ir.DataType.INT64, ir.DataType.UINT8)
REQUIRED = {"to": 1, "dtype": 1, "permutation_size": 3, "num_heads": 2, "kernel_shape": (2, 2)}
DECLARED = {f"{each.domain}.{each.name}": each for each in OPERATORS.values()}


def infer(operator: Operator) -> list[tuple[Result, ...]]:
    """Return the results for operands without shapes, for each element type that it takes."""
    defaults = {each.name: each.default for each in operator.attributes if each.default is not None}
    names = {each.name for each in operator.attributes}
    given = defaults | {name: value for name, value in REQUIRED.items() if name in names}
    found = []
    for dtype in TYPES:
        values = tuple(ir.Value(type=ir.TensorType(dtype)) for _ in operator.inputs)
        try:
            found.append(operator.infer(values, given))
        except ValueError as error:
            assert str(error)  # noqa: PT017  the reason for which it refuses the operands
    return found


@pytest.mark.parametrize("name", DECLARED)
def test_results_of_unknown_shapes_are_of_unknown_shapes(name: str) -> None:
    for results in infer(DECLARED[name]):
        assert {result.shape for result in results} == {None}
