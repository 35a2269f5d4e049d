"""Bounds in sizes that no run meets, empty inputs counted in."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir.symbolic_dims import redundant_bounds
from smelt.ir.symbolic_dims.empty_dims import may_be_empty
from smelt.ir.symbolic_dims.redundant_bounds import is_one_unless_empty, without_redundant_bounds

SIMPLE = {
    "Min(N, (N + Min(1, N)))": "N",
    "Max(0, Min(N + 1, (N + Min(1, N))) - Min(1, (N + Min(1, N))))": "N",
    "Min(1, N + 1)": "1",
    "Max(0, N)": "N",
    "Min(N + M, N)": "N",
    "Min(_d0, _d0 + 3)": "_d0",
    "Max(0, Min(1, N))": "Min(1, N)",
    "Max(Min(N, M), Min(N, M, N + M))": "Min(M, N)",
}
KEPT = (
    *("Max(1, N)", "Min(1, N)", "Max(0, N - 1)", "Max(0, N - 1) + 1", "Min(N, 4)", "N + 1"),
    *("Min(M, N + 1, N + M)", "Max(1, _d0)", "Min(A, B*C*D, 9)"),
)


@pytest.mark.parametrize(("text", "simple"), SIMPLE.items())
def test_bounds_that_never_decide_go(text: str, simple: str) -> None:
    with may_be_empty(["N", "M"]):
        assert str(without_redundant_bounds(ir.SymbolicDim(text))) == simple


@pytest.mark.parametrize("text", KEPT)
def test_others_stay(text: str) -> None:
    with may_be_empty("ABCDMN"):
        dim = ir.SymbolicDim(text)
        assert without_redundant_bounds(dim) is dim


@pytest.mark.parametrize("text", ["Max(0, floor(13*_d2/N) + 3)", "Min(N, floor(M/N) + Min(N, M))"])
def test_a_size_that_is_divided_by_stays_in_a_bound(text: str) -> None:
    """The rest of a Reshape to a batch of another tensor: where that is 0, there is no size."""
    with may_be_empty(["N", "M"]):
        dim = ir.SymbolicDim(text)
        assert without_redundant_bounds(dim) is dim
        assert not is_one_unless_empty(dim, [dim])


def test_no_bound_is_read_where_no_dim_may_be_0(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(dim: ir.SymbolicDim) -> None:
        raise AssertionError(f"SymPy is given {dim}")

    monkeypatch.setattr(redundant_bounds, "expression_of", read)
    dim = ir.SymbolicDim("Max(1, N)")
    assert without_redundant_bounds(dim) is dim
    with may_be_empty(["N"]), pytest.raises(AssertionError):
        without_redundant_bounds(dim)


@pytest.mark.parametrize(
    ("dim", "others", "one"),
    [("Min(1, N)", ["N"], True), ("Min(1, N)", ["N", 1], False), ("Min(1, N)", ["M"], False),
     ("Min(1, N*M)", ["N"], False), ("Min(2, N)", ["N"], False), ("Max(1, N)", ["N"], False)],
)  # fmt: skip
def test_one_row_where_there_is_any(dim: str, others: list[str | int], one: bool) -> None:
    with may_be_empty(["N", "M"]):
        first = ir.SymbolicDim(dim)
        parts = [each if isinstance(each, int) else ir.SymbolicDim(each) for each in others]
        assert is_one_unless_empty(first, [first, *parts]) == one
