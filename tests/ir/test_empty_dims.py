"""Dims that may be 0 where a model is compiled for that."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir import empty_dims
from smelt.ir.empty_dims import expression_from_zero, loses_a_bound, may_be_empty
from smelt.ir.shapes import is_positive


def test_every_dim_is_one_or_more_unless_said_otherwise() -> None:
    dim = ir.SymbolicDim("P")
    assert is_positive(dim)
    with may_be_empty(["P"]):
        assert not is_positive(dim)
        assert is_positive(ir.SymbolicDim("P + 1"))
        assert is_positive(ir.SymbolicDim("N"))
        assert not is_positive(ir.SymbolicDim("N*P"))
    assert is_positive(dim)


@pytest.mark.parametrize(
    ("text", "lost"),
    [("Max(1, P)", True), ("Max(0, P - 1)", True), ("Min(1, P)", True), ("Max(1, N)", False),
     ("Max(3, P)", False), ("P + 1", False), ("Max(0, P - 4)", False)],
)  # fmt: skip
def test_bounds_that_arithmetic_would_forget(text: str, lost: bool) -> None:
    assert not loses_a_bound(ir.SymbolicDim(text))
    with may_be_empty(["P"]):
        assert loses_a_bound(ir.SymbolicDim(text)) == lost


def test_no_bound_is_read_where_no_dim_may_be_0(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(dim: ir.SymbolicDim) -> None:
        raise AssertionError(f"SymPy is given {dim}")

    monkeypatch.setattr(empty_dims, "expression_of", read)
    assert not loses_a_bound(ir.SymbolicDim("Max(1, P)"))
    with may_be_empty(["P"]), pytest.raises(AssertionError):
        loses_a_bound(ir.SymbolicDim("Max(1, P)"))


@pytest.mark.parametrize("size", [0, 1, 5])
def test_the_expression_is_right_from_zero_on(size: int) -> None:
    for text, wanted in (
        ("Max(1, P)", max(1, size)),
        ("Max(0, P - 1)", max(0, size - 1)),
        ("floor(P/2) + P1*P", size // 2 + 7 * size),
    ):
        found = expression_from_zero(ir.SymbolicDim(text), ["P"])
        values = {each: {"P1": 7}.get(each.name, size + 1) for each in found.free_symbols}
        assert found.subs(values) == wanted
