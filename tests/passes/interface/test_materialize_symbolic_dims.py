"""Symbolic dims are bound to fixed sizes."""

from __future__ import annotations

import pytest
from rewrites import run_pass

from smelt.errors import UsageError
from smelt.ir import text
from smelt.passes.interface.materialize_symbolic_dims import bind_dims, materialize_symbolic_dims

GRAPH = "g (float[B,S] x) => (float[S,B] y) { a = Relu(x) y = Transpose<perm=[1,0]>(a) }"


def shapes(dims: tuple[str, ...]) -> list[str]:
    model = text.parse(GRAPH)
    run_pass(materialize_symbolic_dims, model, dims=dims)
    values = [model.graph.inputs[0], model.graph[0].outputs[0], model.graph.outputs[0]]
    return [",".join(str(dim) for dim in value.shape or ()) for value in values]


def test_binds_inputs_results_and_outputs() -> None:
    assert shapes(("B=2", "S=3")) == ["2,3", "2,3", "3,2"]


def test_other_symbols_stay() -> None:
    assert shapes(("B=2",)) == ["2,S", "2,S", "S,2"]


def test_only_inputs_and_outputs_with_the_symbol_count() -> None:
    model = text.parse(
        "g (float[B] x, float[S] z) => (float[B] y, float[S] w) { y = Exp(x) w = Neg(z) }"
    )
    stats = run_pass(materialize_symbolic_dims, model, dims=("B=2",))
    assert stats.fired["dim bound"] == stats.rewrites == 2


@pytest.mark.parametrize("size", [-1, 2.0, True, "2"])
def test_a_size_is_a_whole_number(size: object) -> None:
    with pytest.raises(UsageError, match="E633"):
        bind_dims(text.parse(GRAPH), {"B": size})


@pytest.mark.parametrize(
    ("dims", "code"),
    [(("B",), "E603"), (("B=-1",), "E603"), (("B=x",), "E603"), (("N=1",), "E633")],
)
def test_refuses(dims: tuple[str, ...], code: str) -> None:
    with pytest.raises(UsageError) as caught:
        shapes(dims)
    assert caught.value.code == code
