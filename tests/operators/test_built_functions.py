"""Bodies are built once for an instance of an operator, and copied for each model."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt import operators
from smelt.frontends.onnx import to_proto
from smelt.ir import text
from smelt.operators import built_functions
from smelt.operators.declare import Definition

SVD = "g (float[_d0,N] x) => (s, u, v) { s, u, v = smelt.SVD(x) }"


@pytest.fixture
def built(monkeypatch):
    """The names of the operators whose bodies were built."""
    names = []
    build = Definition.build_body

    def watched(operator, *given):
        names.append(operator.name)
        return build(operator, *given)

    monkeypatch.setattr(Definition, "build_body", watched)
    built_functions._cache.clear()
    return names


def attached(source: str, opset: int = 20) -> ir.Model:
    model = text.parse(source, opset=opset)
    assert operators.attach_functions(model) == ()
    return model


def test_the_next_model_gets_a_copy(built):
    first, second = attached(SVD), attached(SVD)
    assert built.count("SVD") == 1
    assert to_proto(first).SerializeToString() == to_proto(second).SerializeToString()
    [one], [other] = ([f for f in m.functions.values() if f.name == "SVD"] for m in (first, second))
    assert one.graph is not other.graph
    for node in one.graph:
        node.name = "changed"
    assert {node.name for node in other.graph}.isdisjoint({"changed"})


@pytest.mark.parametrize(
    "other",
    [
        SVD.replace("float", "double"),
        SVD.replace("_d0,N", "B,_d0,N"),
        SVD.replace("SVD(x)", "SVD<full_matrices=1>(x)"),
    ],
    ids=["type", "rank", "attribute"],
)
def test_other_instances_are_built(built, other):
    attached(SVD)
    attached(other)
    assert built.count("SVD") == 2


def test_other_opsets_are_built(built):
    attached(SVD)
    attached(SVD, opset=21)
    assert built.count("SVD") == 2


def test_a_body_for_which_sizes_have_made_up_names_keeps_none_of_them(built):
    for function in attached(SVD).functions.values():
        shapes = [value.shape for node in function.graph for value in node.outputs]
        assert "_d" not in " ".join(map(str, shapes))


def test_the_last_ones_are_kept(built, monkeypatch):
    monkeypatch.setattr(built_functions, "KEPT", 1)
    attached("g (float[N] x) => (y) { y = smelt.Digamma(x) }")
    attached("g (float[N] x) => (y) { y = smelt.Lgamma(x) }")
    attached("g (float[N] x) => (y) { y = smelt.Digamma(x) }")
    assert built.count("Digamma") == 2
    assert len(built_functions._cache) == 1


def test_functions_for_runtime_gaps_are_built_once(built):
    """Its definition is made anew for each node, and equals the one before."""
    source = "g (double[N] x) => (y) { y = Atan(x) }"
    attached(source)
    count = len(built)
    attached(source)
    assert count == len(built) == len(built_functions._cache) == 1


def test_zeros_of_two_signs_are_two_attributes(built):
    source = (
        "g (double[N] x) => (y, z) { y = LeakyRelu<alpha=0.0>(x) z = LeakyRelu<alpha=-0.0>(x) }"
    )
    names = {function.name for function in attached(source).functions.values()}
    assert len(names) == len(built) == 2
