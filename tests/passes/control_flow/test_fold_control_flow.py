"""Branches and loop bodies that surely run once are inlined."""

from __future__ import annotations

import numpy as np
import onnx_ir
import pytest
from rewrites import check_rewrite, check_same_numbers, check_unchanged, run_pass

import smelt
from smelt.compiler import optimize_model
from smelt.ir import text
from smelt.passes.control_flow.fold_control_flow import fold_control_flow

YES, NO = "bool c = {1}", "bool c = {0}"


def branches(then: str, other: str, of: str = "c", names: str = "pq") -> str:
    return (
        f"If({of}) <then_branch = g1 () => (float[N] {names[0]}) {{ {then} }}, "
        f"else_branch = g2 () => (float[N] {names[1]}) {{ {other} }}>"
    )


@pytest.mark.parametrize("opset", [13, 16, 25])
@pytest.mark.parametrize(("constant", "taken"), [(YES, "Exp"), (NO, "Abs")])
def test_a_constant_condition(constant: str, taken: str, opset: int) -> None:
    check_rewrite(
        fold_control_flow,
        f"g (float[N] x) => (float[N] y) <{constant}> "
        f"{{ n = Neg(x) y = {branches('e = Exp(n) p = Add(e, x)', 'e = Abs(n) q = Add(e, x)')} }}",
        f"g (float[N] x) => (float[N] y) {{ n = Neg(x) e = {taken}(n) y = Add(e, x) }}",
        opset=opset,
    )


def test_a_negated_condition() -> None:
    check_rewrite(
        fold_control_flow,
        f"g (float[N] x, bool d) => (float[N] y) {{ c = Not(d) "
        f"y = {branches('p = Exp(x)', 'q = Abs(x)')} }}",
        f"g (float[N] x, bool d) => (float[N] y) {{ "
        f"y = {branches('q = Abs(x)', 'p = Exp(x)', 'd', 'qp')} }}",
    )


def test_names_stay_apart() -> None:
    """Both branches and the second If use the same names, which the outer graph may not repeat."""
    one = branches("e = Exp(x) p = Neg(e)", "e = Abs(x) q = Neg(e)")
    two = branches("e = Sin(a) p = Neg(e)", "e = Cos(a) q = Neg(e)", "d")
    source = f"g (float[N] x, bool d) => (float[N] y) <{YES}> {{ a = {one} y = {two} }}"
    check_rewrite(
        fold_control_flow,
        source,
        f"g (float[N] x, bool d) => (float[N] y) {{ b = Exp(x) a = Neg(b) y = {two} }}",
    )


def test_one_in_another() -> None:
    inner = (
        branches("p = Exp(n)", "q = Abs(n)")
        .replace("float[N] p", "float[N] s")
        .replace("p = Exp", "s = Exp")
    )
    check_rewrite(
        fold_control_flow,
        f"g (float[N] x) => (float[N] y) <{YES}> "
        f"{{ y = {branches('n = Neg(x) m = ' + inner + ' p = Add(m, n)', 'q = Neg(x)')} }}",
        "g (float[N] x) => (float[N] y) { n = Neg(x) m = Exp(n) y = Add(m, n) }",
    )


def test_constants_of_a_branch() -> None:
    source = (
        "g (float[2] x) => (float[2] y) <bool c = {0}> { y = If(c) <then_branch = g1 () => "
        "(float[2] p) { p = Exp(x) }, else_branch = g2 () => (float[2] q) <float[2] k = {1,2}> "
        "{ q = Mul(x, k) }> }"
    )
    check_rewrite(
        fold_control_flow,
        source,
        "g (float[2] x) => (float[2] y) <float[2] k = {1,2}> { y = Mul(x, k) }",
    )


def test_a_branch_that_returns_a_constant() -> None:
    model = text.parse(
        "g (float[2] x) => (float[2] y) <bool c = {1}> { y = If(c) <then_branch = g1 () => "
        "(float[2] k) <float[2] k = {1,2}> { }, else_branch = g2 () => (float[2] q) { q = Exp(x) }> }"
    )
    run_pass(fold_control_flow, model)
    assert [node.op_type for node in model.graph] == ["Identity"]


def test_a_value_that_several_outputs_are() -> None:
    check_rewrite(
        fold_control_flow,
        "g (float[N] x) => (float[N] y, float[N] z) <bool c = {1}> { y, z = If(c) "
        "<then_branch = g1 () => (float[N] p, float[N] o) { p = Exp(x) o = Identity(x) }, "
        "else_branch = g2 () => (float[N] q, float[N] r) { q = Abs(x) r = Exp(x) }> }",
        "g (float[N] x) => (float[N] y, float[N] z) { y = Exp(x) z = Identity(x) }",
    )


LOOP = (
    "y, s = Loop({count}, {cond}, x) <body = b (int64 i, bool k, float[2] v) => "
    "(bool {again}, float[2] w, float[2] t) {{ f = Cast<to=1>(i) w = Add(v, f) t = Mul(v, x) {rest} }}>"
)
HEAD = "g (float[2] x) => (float[2] y, float[{}] s)"
ZERO, ONE, TWO = (f"int64 m = {{{n}}}" for n in (0, 1, 2))


def loop(count: str = "m", cond: str = "", again: str = "o", rest: str = "o = Identity(k)") -> str:
    return LOOP.format(count=count, cond=cond, again=again, rest=rest)


TRIPS_0 = {
    "no trips": (ZERO, loop()),
    "fewer than none": ("int64 m = {-3}", loop()),
    "a condition that is false": (f"{TWO}, {NO}", loop(cond="c")),
    "a false condition alone": (NO, loop(count="", cond="c")),
}


@pytest.mark.parametrize(("constants", "body"), TRIPS_0.values(), ids=TRIPS_0.keys())
@pytest.mark.parametrize("opset", [13, 25])
def test_no_trip(constants: str, body: str, opset: int) -> None:
    model = text.parse(f"{HEAD.format('T,2')} <{constants}> {{ {body} }}", opset)
    source = text.parse(f"{HEAD.format('T,2')} <{constants}> {{ {body} }}", opset)
    run_pass(fold_control_flow, model)
    assert [node.op_type for node in model.graph] == ["Identity", "Identity"]
    check_same_numbers(source, model)


STOP = "o = Constant<value = bool {0}>()"
TRIPS_1 = {
    "one trip": (ONE, loop()),
    "one trip, and a true condition": (f"{ONE}, {YES}", loop(cond="c")),
    "a body that ends": (TWO, loop(rest=STOP)),
    "a body that ends, without a number": (YES, loop(count="", cond="c", rest=STOP)),
}


@pytest.mark.parametrize(("constants", "body"), TRIPS_1.values(), ids=TRIPS_1.keys())
@pytest.mark.parametrize("opset", [13, 25])
def test_one_trip(constants: str, body: str, opset: int) -> None:
    check_rewrite(
        fold_control_flow,
        f"{HEAD.format('T,2')} <{constants}> {{ {body} }}",
        f"{HEAD.format('T,2')} <int64 i = {{0}}, int64[1] a = {{0}}> "
        "{ f = Cast<to=1>(i) y = Add(x, f) t = Mul(x, x) s = Unsqueeze(t, a) }",
        opset=opset,
    )


def test_one_trip_that_grows() -> None:
    check_rewrite(
        fold_control_flow,
        "g (float[K] x) => (float[L] y) <int64 m = {1}> { y = Loop(m, , x) <body = b (int64 i, "
        "bool k, float[M] v) => (bool o, float[L] w) "
        "{ o = Identity(k) n = Neg(v) w = Concat<axis=0>(v, n) }> }",
        "g (float[K] x) => (float[L] y) { n = Neg(x) y = Concat<axis=0>(x, n) }",
    )


def test_one_trip_with_a_sequence() -> None:
    """PyTorch cuts a tensor at constant positions by a Loop that inserts parts into a sequence."""
    check_rewrite(
        fold_control_flow,
        "g (float[N] x, float[N] z) => (float[P] y) <int64 m = {1}> { e = SequenceConstruct(z) "
        "s = Loop(m, , e) <body = b (int64 i, bool k, seq(float[M]) v) => (bool k, seq(float[M]) w) "
        "{ p = Exp(x) w = SequenceInsert(v, p) }> y = ConcatFromSequence<axis=0>(s) }",
        "g (float[N] x, float[N] z) => (float[P] y) { e = SequenceConstruct(z) p = Exp(x) "
        "s = SequenceInsert(e, p) y = ConcatFromSequence<axis=0>(s) }",
    )


def test_one_trip_that_returns_a_sequence_beside_what_it_stacks() -> None:
    check_rewrite(
        fold_control_flow,
        "g (float[2] x) => (float[P] y, float[1,2] t) <int64 m = {1}> { e = SequenceConstruct(x) "
        "s, t = Loop(m, , e) <body = b (int64 i, bool k, seq(float[2]) v) => "
        "(bool k, seq(float[2]) w, float[2] u) { u = Exp(x) w = SequenceInsert(v, u) }> "
        "y = ConcatFromSequence<axis=0>(s) }",
        "g (float[2] x) => (float[P] y, float[1,2] t) <int64[1] a = {0}> { e = SequenceConstruct(x) "
        "u = Exp(x) s = SequenceInsert(e, u) t = Unsqueeze(u, a) y = ConcatFromSequence<axis=0>(s) }",
    )


KEPT = {
    "a condition of the caller": "g (float[N] x, bool c) => (float[N] y) "
    f"{{ y = {branches('p = Exp(x)', 'q = Abs(x)')} }}",
    "a default that the caller may change": "g (float[N] x, bool c = {1}) => (float[N] y) "
    f"{{ y = {branches('p = Exp(x)', 'q = Abs(x)')} }}",
    "two trips": f"{HEAD.format('T,2')} <{TWO}> {{ {loop()} }}",
    "trips of the caller": f"g (float[2] x, int64 m) => (float[2] y, float[T,2] s) {{ {loop()} }}",
    "one trip at most": f"g (float[2] x, bool c) => (float[2] y, float[T,2] s) <{ONE}> "
    f"{{ {loop(cond='c')} }}",
    "a body that ends, perhaps unstarted": "g (float[2] x, int64 m) => (float[2] y, float[T,2] s) "
    f"{{ {loop(rest=STOP)} }}",
    "slices of unknown dims": "g (float[K] x) => (float[K] y, int64[T,A,B] s) <int64 m = {0}> "
    "{ y, s = Loop(m, , x) <body = b (int64 i, bool k, float[K] v) => (bool o, float[K] w, "
    "int64[A,B] t) { o = Identity(k) w = Neg(v) t = NonZero(v) }> }",
    "an optional in one trip": (
        "g (float[2] x) => (float[2] y) { n = Constant<value = int64 {1}>() o = Optional(x) "
        "r = Loop(n, , o) <body = b (int64 i, bool c, optional(float[2]) p) => "
        "(bool d, optional(float[2]) q) { d = Identity(c) e = OptionalGetElement(p) f = Neg(e) "
        "q = Optional(f) }> y = OptionalGetElement(r) }"
    ),
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT.keys())
def test_keeps(source: str) -> None:
    check_unchanged(fold_control_flow, source)


def test_many_in_each_other() -> None:
    """The work is linear: nodes move once at any depth."""
    depth = 20
    body = "p = Exp(x)"
    for level in range(depth):
        body = (
            f"p{level} = If(c) <then_branch = t{level} () => (float[N] p) {{ {body} }}, "
            f"else_branch = e{level} () => (float[N] q) {{ q = Abs(x) }}> p = Neg(p{level})"
        )
    source = f"g (float[N] x) => (float[N] p) <{YES}> {{ {body} }}"
    model = text.parse(source)
    run_pass(fold_control_flow, model)
    assert [n.op_type for n in model.graph] == ["Exp", *["Neg"] * depth]


def test_in_the_body_of_a_function() -> None:
    source = (
        '<ir_version: 10, opset_import: ["" : 20, "own" : 1]>\n'
        "g (float[2] x) => (float[2] y) { y = own.f(x) }\n"
        '<domain: "own", opset_import: ["" : 20]> f (x) => (y) { '
        "c = Constant<value = bool {1}>() y = If(c) <then_branch = g1 () => (float[2] p) "
        "<float[2] k = {1,2}> { p = Mul(x, k) }, else_branch = g2 () => (float[2] q) { q = Exp(x) }> }"
    )
    model = text.parse(source)
    run_pass(fold_control_flow, model)
    (function,) = model.functions.values()
    assert [n.op_type for n in function.graph if n.op_type != "Constant"] == ["Mul"]
    assert not function.graph.initializers
    check_same_numbers(text.parse(source), model)


def test_a_constant_condition_and_its_branch_simplify_in_one_run() -> None:
    model = smelt.optimize(
        text.parse(
            "g (float[N,4] x) => (float[N,4] y) <int64 one = {1}> { s = Shape<start=1, end=2>(x) "
            "z = Squeeze(s) c = Greater(z, one) y = If(c) <then_branch = g1 () => (float[N,4] p) "
            "{ e = Relu(x) p = Relu(e) }, else_branch = g2 () => (float[N,4] q) { q = Exp(x) }> }"
        )
    )
    assert [n.op_type for n in model.graph] == ["Relu"]
    assert np.shape(model.graph.inputs) == (1,)


def scan(attributes: str = "", rows: str = "float[1,3]", stacked: str = "float[1,3]") -> str:
    """Return a Scan that adds rows to a state and stacks products."""
    return (
        f"g (float[3] x, {rows} r) => (float[3] y, {stacked} z) {{ y, z = "
        f"Scan<num_scan_inputs = 1{attributes}, body = b (float[3] c, float[3] a) => "
        "(float[3] d, float[3] e) { d = Add(c, a) e = Mul(c, a) }>(x, r) }"
    )


ONE_STEP = {
    "of rows": (scan(), 0),
    "backwards": (scan(", scan_input_directions = [1], scan_output_directions = [1]"), 0),
    "of columns": (scan(", scan_input_axes = [1]", "float[3,1]"), 1),
    "of the last axis": (scan(", scan_input_axes = [-1]", "float[3,1]"), -1),
}


@pytest.mark.parametrize(("source", "axis"), ONE_STEP.values(), ids=ONE_STEP.keys())
@pytest.mark.parametrize("opset", [13, 25])
def test_a_scan_of_one_step(source: str, axis: int, opset: int) -> None:
    rows = "float[1,3]" if axis == 0 else "float[3,1]"
    check_rewrite(
        fold_control_flow,
        source,
        f"g (float[3] x, {rows} r) => (float[3] y, float[1,3] z) <int64[1] axis = {{{axis}}}, "
        "int64[1] front = {0}> { a = Squeeze(r, axis) y = Add(x, a) e = Mul(x, a) "
        "z = Unsqueeze(e, front) }",
        opset=opset,
    )


KEPT_SCANS = {
    "two steps": scan("", "float[2,3]", "float[2,3]"),
    "steps that are not known": scan("", "float[S,3]", "float[S,3]"),
    "stacked behind": scan(", scan_output_axes = [1]", stacked="float[3,1]"),
}


@pytest.mark.parametrize("source", KEPT_SCANS.values(), ids=KEPT_SCANS.keys())
def test_keeps_a_scan(source: str) -> None:
    check_unchanged(fold_control_flow, source)


def test_nodes_of_a_body_that_are_named_like_outer_nodes_get_other_names() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y)
    <bool yes = {1}> { a = Exp(x) y = If(yes) <then_branch = t () => (float[2] b) { b = Neg(a) },
    else_branch = e () => (float[2] c) { c = Abs(a) }> }"""
    model = onnx_ir.from_onnx_text(text)
    inner = model.graph[1].attributes["then_branch"].as_graph()[0]
    model.graph[0].name = inner.name = "node_same"
    optimize_model(model, pipeline="fold-control-flow")
    names = [node.name for node in model.graph]
    assert [node.op_type for node in model.graph] == ["Exp", "Neg"]
    assert len(set(names)) == len(names)
