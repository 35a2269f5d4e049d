"""Equal constants are stored once; they are compared bit by bit."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from rewrites import check_rewrite, check_unchanged, run_pass

from smelt.ir import scope, text
from smelt.passes.cleanup.const_deduplication import const_deduplication


def constants_left(initializers: str, body: str, **options: object) -> int:
    model = text.parse(f"g (float[2] x) => (float[2] y) <{initializers}> {{ {body} }}")
    before = text.canonical(model)
    run_pass(const_deduplication, model, **options)
    assert text.canonical(model) == before
    return len(model.graph.initializers)


BODY = "m = Mul(x, a) y = Mul(m, b)"
KINDS = {
    "equal": ("float[2] a = {1,2}, float[2] b = {1,2}", 1),
    "nearly equal": ("float[2] a = {1,2}, float[2] b = {1,2.0000002}", 2),
    "NaN equals itself": ("float[2] a = {1,nan}, float[2] b = {1,nan}", 1),
    "-0 is not 0": ("float[2] a = {1,0}, float[2] b = {1,-0.0}", 2),
    "other dims": ("float[2] a = {1,2}, float[1,2] b = {1,2}", 2),
}


@pytest.mark.parametrize(("initializers", "count"), KINDS.values(), ids=KINDS.keys())
def test_by_bits(initializers: str, count: int) -> None:
    body = (
        BODY
        if "1,2] b" not in initializers
        else "m = Mul(x, a) z = Mul(m, b) s = Constant<value_ints=[0]>() y = Squeeze(z, s)"
    )
    assert constants_left(initializers, body) == count


def test_other_types_are_other_constants() -> None:
    model = text.parse(
        "g (float[1] x) => (float[1] y) <float[1] a = {0}, int32[1] b = {0}> { c = Cast<to=1>(b) m = Mul(x, a) y = Mul(m, c) }"
    )
    run_pass(const_deduplication, model)
    assert len(model.graph.initializers) == 2


def test_the_threshold() -> None:
    assert constants_left("float[2] a = {1,2}, float[2] b = {1,2}", BODY, const_threshold=3) == 2


def test_nodes_and_branches_share_what_stands_outside() -> None:
    check_rewrite(
        const_deduplication,
        "g (float[2] x, bool c) => (float[2] y) <float[2] a = {1,2}> { m = Mul(x, a) y = If(c) <"
        "then_branch = t () => (float[2] t) { k = Constant<value = float[2] {1,2}>() t = Mul(m, k) },"
        "else_branch = e () => (float[2] e) { e = Neg(m) }> }",
        "g (float[2] x, bool c) => (float[2] y) <float[2] a = {1,2}> { m = Mul(x, a) y = If(c) <"
        "then_branch = t () => (float[2] t) { t = Mul(m, a) },"
        "else_branch = e () => (float[2] e) { e = Neg(m) }> }",
    )


@pytest.mark.parametrize("changed", [None, 0, 1, 1999])
def test_long_weights_are_compared_by_a_sample_then_by_digest(changed: int | None) -> None:
    given = ", ".join(f"float[2000] {name}" for name in "abc")
    body = "m = Mul(x, a) n = Mul(m, b) y = Mul(n, c)"
    model = text.parse(f"g (float[N,2000] x, {given}) => (float[N,2000] y) {{ {body} }}")
    for value in list(model.graph.inputs)[1:]:
        model.graph.inputs.remove(value)
        held = np.arange(2000, dtype=np.float32)
        if value.name == "b" and changed is not None:
            held[changed] += 0.5
        value.const_value = ir.Tensor(held, name=value.name)
        model.graph.register_initializer(value)
    run_pass(const_deduplication, model)
    assert list(model.graph.initializers) == (["a"] if changed is None else ["a", "b"])


def test_constants_that_callers_override_or_receive_stay() -> None:
    graph = "g (float[2] x, float[2] a = {1,2}) => (float[2] y, float[2] b) <float[2] b = {1,2}> { m = Mul(x, a) y = Mul(m, b) }"
    model = text.parse(graph)
    run_pass(const_deduplication, model)
    assert sorted(model.graph.initializers) == ["a", "b"]


def in_branches(then: str, other: str, constants: str = "", k: str = "float[2] k = {1,2}") -> str:
    return (
        f"g (float[2] x, bool c) => (float[2] y) {constants} {{ y = If(c) <then_branch = t () => "
        f"(float[2] p) <{k}> {{ {then} }}, else_branch = e () => (float[2] q) "
        f"<float[2] k = {{1,2}}> {{ {other} }}> }}"
    )


def test_both_branches_share_one() -> None:
    source = in_branches("p = Add(x, k)", "q = Mul(x, k)")
    check_rewrite(
        const_deduplication,
        source,
        "g (float[2] x, bool c) => (float[2] y) <float[2] s = {1,2}> { y = If(c) <then_branch = "
        "t () => (float[2] p) { p = Add(x, s) }, else_branch = e () => (float[2] q) "
        "{ q = Mul(x, s) }> }",
    )
    model = text.parse(source)
    run_pass(const_deduplication, model)
    assert [len(graph.initializers) for graph in scope.graphs(model)] == [1, 0, 0]


def test_constant_nodes_of_both_branches_share_one() -> None:
    made = "k = Constant<value_floats=[3.,4.]>()"
    model = text.parse(
        in_branches(f"{made} p = Add(x, k)", f"{made} q = Mul(x, k)").replace(
            "<float[2] k = {1,2}>", ""
        )
    )
    run_pass(const_deduplication, model)
    assert [len(graph.initializers) for graph in scope.graphs(model)] == [1, 0, 0]
    assert [len(graph) for graph in scope.graphs(model)] == [1, 1, 1]


APART = {
    "other bytes": in_branches("p = Add(x, k)", "q = Mul(x, k)", k="float[2] k = {1,-2}"),
    "another shape": in_branches(
        "p = Add(x, k)", "q = Mul(x, k)", k="float[1,2] k = {1,2}"
    ).replace("p = Add(x, k)", "r = Squeeze(k) p = Add(x, r)"),
}


@pytest.mark.parametrize("source", APART.values(), ids=APART.keys())
def test_branches_keep_what_is_not_equal(source: str) -> None:
    check_unchanged(const_deduplication, source)


def test_branches_of_a_function_keep_their_own() -> None:
    model = text.parse(
        '<ir_version: 10, opset_import: ["" : 20, "own" : 1]>\n'
        "g (float[2] x, bool c) => (float[2] y) { y = own.f(x, c) }\n"
        '<domain: "own", opset_import: ["" : 20]> f (x, c) => (y) { y = If(c) <then_branch = '
        "t () => (float[2] p) <float[2] k = {1,2}> { p = Add(x, k) }, else_branch = e () => "
        "(float[2] q) <float[2] k = {1,2}> { q = Mul(x, k) }> }"
    )
    assert run_pass(const_deduplication, model).rewrites == 0


def test_a_constant_that_a_branch_returns_stays() -> None:
    check_unchanged(
        const_deduplication,
        "g (float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] k) "
        "<float[2] k = {1,2}> { }, else_branch = e () => (float[2] q) <float[2] k = {1,2}> "
        "{ q = Mul(x, k) }> }",
    )
