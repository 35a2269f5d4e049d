"""Canonical text: equal exactly for equal computations."""

from __future__ import annotations

import pytest

from smelt.errors import InvalidModel
from smelt.ir import text


def canonical(graph: str) -> str:
    return text.canonical(text.parse(graph))


BASE = "g (float[4] x, float[4] z) => (float[4] y) { a = Neg(x) b = Abs(z) y = Add(a, b) }"
SAME = {
    "inner names": BASE.replace(" a ", " left ").replace("(a,", "(left,"),
    "node order": "g (float[4] x, float[4] z) => (float[4] y) { b = Abs(z) a = Neg(x) y = Add(a, b) }",
}
OTHER = {
    "operands swapped": BASE.replace("Add(a, b)", "Add(b, a)"),
    "another operator": BASE.replace("Abs", "Exp"),
    "an attribute": BASE.replace("Neg(x)", "LeakyRelu<alpha=0.5>(x)"),
    "an output's name": BASE.replace(" y)", " out)").replace("y =", "out ="),
    "a dead node": BASE.replace("{", "{ dead = Exp(x)"),
}


@pytest.mark.parametrize("graph", SAME.values(), ids=SAME.keys())
def test_same(graph: str) -> None:
    assert canonical(graph) == canonical(BASE)


@pytest.mark.parametrize("graph", OTHER.values(), ids=OTHER.keys())
def test_other(graph: str) -> None:
    assert canonical(graph) != canonical(BASE)


def test_constants_print_alike_however_they_are_held() -> None:
    node = "g (float[2] x) => (float[2] y) { c = Constant<value = float[2] {1.0, nan}>() y = Add(x, c) }"
    initializer = "g (float[2] x) => (float[2] y) <float[2] c = {1.0, nan}> { y = Add(x, c) }"
    assert canonical(node) == canonical(initializer)
    assert "float[2]{1.0,nan}" in canonical(node)


def test_negative_zero_is_another_constant() -> None:
    graph = (
        "g (float[1] x) => (float[1] y) {{ c = Constant<value = float[1] {{{}}}>() y = Add(x, c) }}"
    )
    assert canonical(graph.format("0.0")) != canonical(graph.format("-0.0"))


def test_branches_are_printed() -> None:
    graph = (
        "g (float[4] x, bool c) => (float[4] y) {{ y = If(c) <"
        "then_branch = t () => (float[4] t) {{ t = {}(x) }},"
        "else_branch = e () => (float[4] e) {{ e = Abs(x) }}> }}"
    )
    assert canonical(graph.format("Neg")) != canonical(graph.format("Exp"))


def test_imports_the_domains_that_the_text_uses() -> None:
    model = text.parse("g (float[4] x) => (float[4] y) { y = smelt.c.ConvRelu(x) }")
    assert model.opset_imports["smelt.c"] == 1


def test_bad_text_is_refused() -> None:
    with pytest.raises(InvalidModel) as caught:
        text.parse("g (float[4] x) =>")
    assert caught.value.code == "E310"
