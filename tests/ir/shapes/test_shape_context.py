"""Dims without a size or a name get symbols, and rules may not return unnamed dims."""

import onnx_ir as ir
import pytest

from smelt.ir.shapes.shape_context import ShapeContext


def _context() -> ShapeContext:
    return ShapeContext({"": 20}, policy="refine")


def test_a_shape_with_sizes_and_names_stays_the_same_object() -> None:
    shape = ir.Shape([2, "N", 0])
    assert _context().name_anonymous_dims_in_shape(shape) is shape


def test_each_dim_without_a_name_gets_one_of_its_own() -> None:
    named = _context().name_anonymous_dims_in_shape(ir.Shape([None, 3, None]))
    first, size, last = named.dims
    assert size == 3
    assert isinstance(first, ir.SymbolicDim)
    assert isinstance(last, ir.SymbolicDim)
    assert None not in (first.value, last.value)
    assert first != last


def test_a_rule_may_not_leave_a_dim_without_a_name() -> None:
    value = ir.Value(name="x")
    with pytest.raises(ValueError, match="anonymous"):
        _context().set_shape(value, ir.Shape([1, None]))
    assert _context().set_shape(value, ir.Shape([1, "N"]))
