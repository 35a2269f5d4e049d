"""A Where with a known choice is removed."""

from __future__ import annotations

import numpy as np
import pytest
from literals import literal
from rewrites import check_rewrite, check_same_numbers, check_unchanged, run_pass

from smelt import optimize
from smelt.ir import text
from smelt.ir.symbolic_dims.empty_dims import note_never_empty
from smelt.passes.simplify.select_optimization import select_optimization
from smelt.runtime.runner import open_runner

G = "g (float[N,2] a, float[N,2] b) => (float[N,2] y)"
KNOWN = {
    "all true": ("bool[2] c = {1,1}", "Where(c, a, b)", "a"),
    "all false": ("bool[2] c = {0,0}", "Where(c, a, b)", "b"),
    "a scalar": ("bool c = {1}", "Where(c, a, b)", "a"),
    "a scalar of rank 2": ("bool[1,1] c = {0}", "Where(c, a, b)", "b"),
    "the other operand broadcasts": ("bool c = {1}, float k = {2}", "Where(c, a, k)", "a"),
}


@pytest.mark.parametrize(("constants", "where", "chosen"), KNOWN.values(), ids=KNOWN.keys())
def test_a_known_choice(constants: str, where: str, chosen: str) -> None:
    check_rewrite(
        select_optimization,
        f"{G} <{constants}> {{ w = {where} y = Neg(w) }}",
        f"{G} {{ y = Neg({chosen}) }}",
    )


@pytest.mark.parametrize("dtype", ["float16", "double", "int32", "bool"])
def test_any_type(dtype: str) -> None:
    g = f"g ({dtype}[N,2] a, {dtype}[N,2] b) => ({dtype}[N,2] y)"
    check_rewrite(
        select_optimization,
        f"{g} <bool c = {{1}}> {{ w = Where(c, a, b) y = Identity(w) }}",
        f"{g} {{ y = Identity(a) }}",
    )


def test_both_operands_are_one() -> None:
    check_rewrite(
        select_optimization,
        "g (bool[2] c, float[N,2] a) => (float[N,2] y) { w = Where(c, a, a) y = Neg(w) }",
        "g (bool[2] c, float[N,2] a) => (float[N,2] y) { y = Neg(a) }",
    )


TWICE = {
    "false, the same": ("Where(c, a, i)", "Where(c, h, k)", "Where(c, a, k)"),
    "true, the same": ("Where(c, i, a)", "Where(c, h, k)", "Where(c, h, a)"),
    "false, the opposite": ("Where(c, a, i)", "Where(n, h, k)", "Where(c, a, h)"),
    "true, the opposite": ("Where(c, i, a)", "Where(n, h, k)", "Where(c, k, a)"),
    "the outer one is the opposite": ("Where(n, a, i)", "Where(c, h, k)", "Where(c, h, a)"),
    "the outer one, in the true branch": ("Where(n, i, a)", "Where(c, h, k)", "Where(c, a, k)"),
}
CHOICES = "g (bool[N,2] c, float[N,2] a, float[N,2] h, float[N,2] k) => (float[N,2] y)"


@pytest.mark.parametrize(("outer", "inner", "after"), TWICE.values(), ids=TWICE.keys())
def test_a_condition_that_was_asked_before(outer: str, inner: str, after: str) -> None:
    negated = "n = Not(c) " if "n," in outer + inner else ""
    check_rewrite(
        select_optimization,
        f"{CHOICES} {{ {negated}i = {inner} w = {outer} y = Neg(w) }}",
        f"{CHOICES} {{ w = {after} y = Neg(w) }}",
    )


COUNTED = "f = Cast<to={}>(c) n = Not(c) g = Cast<to={}>(n) p = Mul(a, f) q = Mul(g, b) y = Add({})"


@pytest.mark.parametrize("operands", ["p, q", "q, p"])
@pytest.mark.parametrize(("dtype", "number"), [("int32", 6), ("int64", 7)])
def test_integers_that_products_choose(dtype: str, number: int, operands: str) -> None:
    head = f"g (bool[N,1] c, {dtype}[N,2] a, {dtype}[2] b) => ({dtype}[N,2] y)"
    check_rewrite(
        select_optimization,
        f"{head} {{ {COUNTED.format(number, number, operands)} }}",
        f"{head} {{ y = Where(c, a, b) }}",
    )


def test_floats_that_products_choose_may_be_infinite() -> None:
    head = "g (bool[N,1] c, float[N,2] a, float[2] b) => (float[N,2] y)"
    check_unchanged(select_optimization, f"{head} {{ {COUNTED.format(1, 1, 'p, q')} }}")


def test_an_inner_choice_that_something_else_reads_stays_for_it() -> None:
    check_rewrite(
        select_optimization,
        f"{CHOICES} {{ i = Where(c, h, k) w = Where(c, a, i) y = Mul(w, i) }}",
        f"{CHOICES} {{ i = Where(c, h, k) w = Where(c, a, k) y = Mul(w, i) }}",
    )


@pytest.mark.parametrize(
    "graph",
    [
        "g (bool[N,2] c, bool[N,2] d, float[N,2] a, float[N,2] h, float[N,2] k) => "
        "(float[N,2] y) { i = Where(d, h, k) w = Where(c, a, i) y = Neg(w) }",
        "g (bool[2] c, float[2] a, float[N,2] h, float[2] k) => (float[N,2] y) "
        "{ i = Where(c, h, k) w = Where(c, a, i) y = Neg(w) }",
    ],
    ids=["another condition", "what is left out broadcasts the rest"],
)
def test_inner_choices_that_stay(graph: str) -> None:
    check_unchanged(select_optimization, graph)


def test_the_choice_is_an_output() -> None:
    check_rewrite(
        select_optimization,
        f"{G} <bool c = {{1}}> {{ y = Where(c, a, b) }}",
        f"{G} {{ y = Identity(a) }}",
    )


def test_a_choice_in_a_branch() -> None:
    def model(constants: str, body: str) -> str:
        return (
            "g (bool p, float[2] x) => (float[2] y) { y = If(p) <"
            f"then_branch = t () => (float[2] u) {constants} {{ {body} }}, "
            "else_branch = e () => (float[2] w) { w = Neg(x) }> }"
        )

    check_rewrite(
        select_optimization,
        model("<bool c = {1}, float k = {2}>", "v = Where(c, x, k) u = Abs(v)"),
        model("", "u = Abs(x)"),
    )


MIXED = "bool[2] c = {1,0}"
KEPT = {
    "some true": f"{G} <{MIXED}> {{ y = Where(c, a, b) }}",
    "an input": "g (bool[2] c, float[2] a, float[2] b) => (float[2] y) { y = Where(c, a, b) }",
    "a condition with a default": "g (bool c, float[2] a, float[2] b) => (float[2] y) "
    "<bool c = {1}> { y = Where(c, a, b) }",
    "the condition widens it": "g (float[2] a, float[2] b) => (float[3,2] y) "
    "<bool[3,1] c = {1,1,1}> { y = Where(c, a, b) }",
    "the other operand widens it": "g (float[1,2] a, float[3,2] b) => (float[3,2] y) "
    "<bool c = {1}> { y = Where(c, a, b) }",
    "the other operand may widen it": "g (float[N,2] a, float[M,2] b) => (float[?,2] y) "
    "<bool c = {1}> { y = Where(c, a, b) }",
    "a condition that widens one operand": "g (bool[3,2] c, float[2] a) => (float[3,2] y) "
    "{ y = Where(c, a, a) }",
    "infinities under a mask": f"g (float[N,2] b) => (float[N,2] y) <{MIXED}, "
    f"float k = {literal('float', -np.inf)}> {{ y = Where(c, k, b) }}",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(select_optimization, graph)


X = "(float[N,2] x) => (float[N,2] y)"
INFINITE = {
    "minus infinity": ("", (-np.inf,), "Where(c, k, x)", (-np.inf, -0.0)),
    "plus infinity": ("", (np.inf,), "Where(c, k, x)", (np.inf, -0.0)),
    "on the other side": ("", (-np.inf,), "Where(c, x, k)", (-0.0, -np.inf)),
    "both signs": ("[2]", (np.inf, -np.inf), "Where(c, x, k)", (-0.0, -np.inf)),
}


@pytest.mark.parametrize(("shape", "k", "where", "term"), INFINITE.values(), ids=INFINITE.keys())
@pytest.mark.parametrize("dtype", ["float", "float16", "double"])
def test_infinities_are_added_if_assumed(
    dtype: str, shape: str, k: tuple[float, ...], where: str, term: tuple[float, ...]
) -> None:
    g = "g " + X.replace("float", dtype)
    constant = f"{dtype}{shape} k = {literal(dtype, *k)}"
    check_rewrite(
        select_optimization,
        f"{g} <{MIXED}, {constant}> {{ y = {where} }}",
        f"{g} <{dtype}[2] t = {literal(dtype, *term)}> {{ y = Add(x, t) }}",
        modes=("normal",),
        assume_finite=True,
    )


def test_the_sign_of_zero_stays() -> None:
    graph = (
        f"g (float[2] x) => (float[2] y) <{MIXED}, float k = {literal('float', -np.inf)}> "
        "{ w = Where(c, k, x) y = Reciprocal(w) }"
    )
    source, model = text.parse(graph), text.parse(graph)
    run_pass(select_optimization, model, assume_finite=True)
    assert [node.op_type for node in model.graph] == ["Add", "Reciprocal"]
    check_same_numbers(
        source, model, select_optimization.exactness, {"x": np.asarray([1, -0.0], dtype=np.float32)}
    )


def test_the_option_by_name() -> None:
    model = text.parse(
        f"g {X} <{MIXED}, float k = {literal('float', np.inf)}> {{ y = Where(c, k, x) }}"
    )
    done = optimize(model, pipeline="select-optimization{assume-finite=true}")
    assert [node.op_type for node in done.graph] == ["Add"]


NOT_INFINITE = {
    "a large number": f"g {X} <{MIXED}, float k = {{-1e9}}> {{ y = Where(c, k, x) }}",
    "NaN": f"g {X} <{MIXED}, float k = {literal('float', np.nan)}> {{ y = Where(c, k, x) }}",
    "infinite in part": f"g {X} <{MIXED}, float[2] k = {literal('float', np.inf, 0)}> "
    "{ y = Where(c, k, x) }",
    "a mask that is computed": f"g (bool[2] c, float[N,2] x) => (float[N,2] y) "
    f"<float k = {literal('float', np.inf)}> {{ y = Where(c, k, x) }}",
    "a larger constant": f"g (float[2,2] x) => (float[2,2] y) <{MIXED}, "
    f"float[2,1] k = {literal('float', np.inf, -np.inf)}> {{ y = Where(c, k, x) }}",
    "integers": f"g (int32[2] x) => (int32[2] y) <{MIXED}, int32 k = {{-2147483648}}> "
    "{ y = Where(c, k, x) }",
}


@pytest.mark.parametrize("graph", NOT_INFINITE.values(), ids=NOT_INFINITE.keys())
def test_keeps_what_is_not_infinite(graph: str) -> None:
    check_unchanged(select_optimization, graph, assume_finite=True)


COUNT = "n = Shape<start=0, end=1>(a) h = Cast<to=6>(n) c = Cast<to=1>(h)"
SOME = {
    "more than 0": f"{COUNT} z = Greater(c, zero)",
    "0 is less": f"{COUNT} z = Less(zero, c)",
}


@pytest.mark.parametrize("condition", SOME.values(), ids=SOME.keys())
def test_there_is_something(condition: str) -> None:
    """``jnp.var`` checks for an empty input; models from JAX have none."""
    body = f"{condition} w = Where(z, a, k) y = Neg(w)"
    model = text.parse(f"{G} <float zero = {{0}}, float k = {{nan}}> {{ {body} }}", 23)
    note_never_empty(model)
    run_pass(select_optimization, model)
    assert [node.op_type for node in model.graph] == ["Neg"]
    assert model.graph[0].inputs == (model.graph.inputs[0],)


def test_an_input_of_another_source_may_be_empty() -> None:
    model = text.parse(
        "g (float[N] x, float a, float b) => (float y) <int64 zero = {0}> "
        "{ n = Size(x) z = Greater(n, zero) y = Where(z, a, b) }"
    )
    run = open_runner(optimize(model), "onnxruntime")
    given = np.float32(1), np.float32(2)
    assert [run(np.zeros(n, np.float32), *given)[0] for n in (0, 3)] == [2, 1]


MAYBE = {
    "less one": f"{COUNT} o = Constant<value_float=1.>() d = Sub(c, o) z = Greater(d, zero)",
    "0 may be the size": "n = NonZero(a) s = Shape<start=1, end=2>(n) c = Cast<to=1>(s) "
    "z = Greater(c, zero)",
    "a number of the caller": "s = ReduceMax<keepdims=0>(a) z = Greater(s, zero)",
    "or equal": f"{COUNT} z = GreaterOrEqual(zero, c)",
}


@pytest.mark.parametrize("condition", MAYBE.values(), ids=MAYBE.keys())
def test_there_may_be_nothing(condition: str) -> None:
    check_unchanged(
        select_optimization,
        f"{G} <float zero = {{0}}, float k = {{nan}}> {{ {condition} w = Where(z, a, k) y = Neg(w) }}",
    )
