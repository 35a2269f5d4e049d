"""Dims that may be 0 where a model is compiled for that."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir.same_shape import is_positive
from smelt.ir.symbolic_dims.empty_dims import expression_allowing_zero, may_be_empty


def test_every_dim_is_one_or_more_unless_said_otherwise() -> None:
    assert is_positive(ir.SymbolicDim("P"))
    with may_be_empty(["P"]):
        assert not is_positive(ir.SymbolicDim("P"))
        assert is_positive(ir.SymbolicDim("P + 1"))
        assert is_positive(ir.SymbolicDim("N"))
        assert not is_positive(ir.SymbolicDim("N*P"))
    assert is_positive(ir.SymbolicDim("P"))


@pytest.mark.parametrize(
    ("text", "plain", "whole"),
    [("Max(1, P)", "P + 1", "Max(1, P) + 1"), ("Max(0, P - 1)", "P", "Max(0, P - 1) + 1"),
     ("Min(1, P)", "2", "Min(1, P) + 1"), ("Max(1, N)", "N + 1", "N + 1"),
     ("Max(0, _d3 - 1)", "_d3", "Max(0, _d3 - 1) + 1"),
     ("Max(0, P - 4)", "Max(0, P - 4) + 1", "Max(0, P - 4) + 1")],
)  # fmt: skip
def test_arithmetic_keeps_bounds_that_only_an_empty_input_meets(
    text: str, plain: str, whole: str
) -> None:
    assert str(ir.SymbolicDim(text) + 1) == plain
    with may_be_empty(["P"]):
        assert str(ir.SymbolicDim(text) + 1) == whole


def test_dims_simplified_before_are_simplified_anew() -> None:
    dim, rounded = ir.SymbolicDim("Max(1, P)"), ir.SymbolicDim("P")
    rounded = (rounded + 1) // 2
    assert str(dim + 0) == "P"
    x = ir.Value(name="x", shape=ir.Shape([dim, rounded]))
    model = ir.Model(ir.Graph([x], [], nodes=[], opset_imports={"": 20}), ir_version=10)
    with may_be_empty(["P"], model):
        assert str(dim + 0) == "Max(1, P)"
        assert str(rounded - ir.SymbolicDim("floor((P + 1)/2)")) == "0"


@pytest.mark.parametrize("size", [0, 1, 5])
def test_the_expression_is_right_from_zero_on(size: int) -> None:
    for text, wanted in (
        ("Max(1, P)", max(1, size)),
        ("Max(0, P - 1)", max(0, size - 1)),
        ("floor(P/2) + P1*P", size // 2 + 7 * size),
    ):
        found = expression_allowing_zero(ir.SymbolicDim(text), ["P"])
        values = {each: {"P1": 7}.get(each.name, size + 1) for each in found.free_symbols}
        assert found.subs(values) == wanted
