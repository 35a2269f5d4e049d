"""The rewriter and its worklist: what an edit keeps, removes and refuses."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from smelt.errors import InternalError
from smelt.ir import provenance, scope, text, verify
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.pattern import const, op, var
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.rule import KEPT, Match, Miss, Replacement, Rule, RuleSet, rule
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.worklist import FANOUT, RuleStats, Worklist

X = var("x")


@rule(op("Neg", op("Neg", X)))
def double_negation(m: Match, b: Builder) -> Replacement:
    return m["x"]


@rule(op("Mul", X, const(1.0), commutative=True))
def times_one(m: Match, b: Builder) -> Replacement:
    return m["x"]


@rule(op("Sub", X, X))
def to_half(m: Match, b: Builder) -> Replacement:
    return b.op("Cast", m["x"], to=ir.DataType.FLOAT16)


def rewrite(source: str, *rules: Rule, limit: int | None = None) -> tuple[str, RuleStats, ir.Model]:
    model = text.parse(source)
    shapes = ShapeInference(model)
    shapes.infer_model()
    rewriter = Rewriter(model, shapes, Constants(), limit)
    stats = Worklist(rewriter, rules).run()
    verify.verify(model)
    return text.canonical(model), stats, model


def expected(source: str) -> str:
    model = text.parse(source)
    ShapeInference(model).infer_model()
    return text.canonical(model)


REWRITES = {
    "a chain collapses to its fixed point": (
        "g (float[N] x) => (float[N] y) { a = Neg(x) b = Neg(a) c = Neg(b) d = Neg(c) y = Relu(d) }",
        "g (float[N] x) => (float[N] y) { y = Relu(x) }",
    ),
    "an output keeps its name when an inner result becomes it": (
        "g (float[N] x) => (float[N] y) { r = Relu(x) a = Neg(r) y = Neg(a) }",
        "g (float[N] x) => (float[N] y) { y = Relu(x) }",
    ),
    "an input cannot become an output, so an Identity remains": (
        "g (float[N] x) => (float[N] y) { a = Neg(x) y = Neg(a) }",
        "g (float[N] x) => (float[N] y) { y = Identity(x) }",
    ),
    "nor can a result that is an output already": (
        "g (float[N] x) => (float[N] y, float[N] r) { r = Relu(x) a = Neg(r) y = Neg(a) }",
        "g (float[N] x) => (float[N] y, float[N] r) { r = Relu(x) y = Identity(r) }",
    ),
    "an output read by others": (
        "g (float[N] x) => (float[N] y, float[N] z) { r = Relu(x) a = Neg(r) y = Neg(a) z = Abs(y) }",
        "g (float[N] x) => (float[N] y, float[N] z) { y = Relu(x) z = Abs(y) }",
    ),
    "a shared inner node stays": (
        "g (float[N] x) => (float[N] y, float[N] a) { a = Neg(x) b = Neg(a) y = Relu(b) }",
        "g (float[N] x) => (float[N] y, float[N] a) { a = Neg(x) b = Neg(a) y = Relu(b) }",
    ),
    "inside a branch, capturing from outside": (
        "g (float[N] x, bool c) => (float[N] y) { r = Relu(x) y = If(c) <"
        "then_branch = t () => (float[N] t) { a = Neg(r) t = Neg(a) },"
        "else_branch = e () => (float[N] e) { a2 = Neg(r) b2 = Neg(a2) e = Abs(b2) }> }",
        "g (float[N] x, bool c) => (float[N] y) { r = Relu(x) y = If(c) <"
        "then_branch = t () => (float[N] t) { t = Identity(r) },"
        "else_branch = e () => (float[N] e) { e = Abs(r) }> }",
    ),
    "a constant that raises the rank": (
        "g (float[N] x) => (float[1,N] y) { c = Constant<value = float[1,1] {1.0}>() m = Mul(x, c) y = Relu(m) }",
        "g (float[N] x) => (float[1,N] y) { c = Constant<value = float[1,1] {1.0}>() m = Mul(x, c) y = Relu(m) }",
    ),
    "a scalar constant": (
        "g (float[N] x) => (float[N] y) { c = Constant<value = float {1.0}>() m = Mul(c, x) y = Relu(m) }",
        "g (float[N] x) => (float[N] y) { y = Relu(x) }",
    ),
}


@pytest.mark.parametrize(("before", "after"), REWRITES.values(), ids=REWRITES.keys())
def test_rewrites(before: str, after: str) -> None:
    assert rewrite(before, double_negation, times_one)[0] == expected(after)


def test_an_operator_that_a_rewrite_makes_brings_back_the_rules_that_lacked_it() -> None:
    """Mish first looks as if it could not occur: the model has no Softplus."""

    @rule(op("Log", op("Add", op("Exp", X), const(1.0))))
    def softplus(m: Match, b: Builder) -> Replacement:
        return b.op("Softplus", m["x"])

    @rule(op("Mul", X, op("Tanh", op("Softplus", X)), commutative=True), min_opset=18)
    def mish(m: Match, b: Builder) -> Replacement:
        return b.op("Mish", m["x"])

    body = "e = Exp(x) a = Add(e, one) s = Log(a) t = Tanh(s) y = Mul(t, x)"
    g = "g (float[N] x) => (float[N] y) <float one = {1}>"
    for rules in ((softplus, mish), (mish, softplus)):
        after, stats, _ = rewrite(f"{g} {{ {body} }}", *rules)
        assert after == expected(f"{g} {{ y = Mish(x) }}")
        assert stats.fired == {"softplus": 1, "mish": 1}


def test_refuses_another_dtype_and_says_so() -> None:
    source = "g (float[N] x) => (float[N] y) { s = Sub(x, x) y = Relu(s) }"
    result, stats, _ = rewrite(source, to_half)
    assert result == expected(source)
    assert stats.fired.total() == 0
    [(name, reason)] = stats.missed
    assert name == "to_half"
    assert "dtype would change" in reason


def test_unknown_dims_are_not_proved_equal() -> None:
    @rule(op("Max", X, var("z")))
    def first_of_max(m: Match, b: Builder) -> Replacement:
        return m["x"]

    source = "g (float[N] x, float[M] z) => (float[K] y) { m = Max(x, z) y = Relu(m) }"
    _, stats, _ = rewrite(source, first_of_max)
    assert stats.fired.total() == 0
    assert "not proved" in next(iter(stats.missed))[1]


def test_near_misses_carry_the_reason_and_a_place() -> None:
    @rule(op("Relu", X))
    def never(m: Match, b: Builder) -> Replacement:
        b.op("Abs", m["x"])
        return Miss("it is Tuesday")

    source = "g (float[N] x) => (float[N] y) { y = Relu(x) }"
    result, stats, model = rewrite(source, never)
    assert result == expected(source)
    assert len(model.graph) == 1
    assert stats.missed == {("never", "it is Tuesday"): 1}
    assert stats.example["never", "it is Tuesday"] == "Relu"


def test_a_rule_below_its_opset_is_a_near_miss() -> None:
    newer = Rule("newer", double_negation.pattern, double_negation.build, min_opset=99)
    _, stats, _ = rewrite("g (float[N] x) => (float[N] y) { a = Neg(x) y = Neg(a) }", newer)
    assert "opset 23; the rule needs 99" in next(iter(stats.missed))[1]


def test_rules_that_undo_each_other_are_named() -> None:
    @rule(op("Relu", X))
    def to_abs(m: Match, b: Builder) -> Replacement:
        return b.op("Abs", m["x"])

    @rule(op("Abs", X))
    def to_relu(m: Match, b: Builder) -> Replacement:
        return b.op("Relu", m["x"])

    with pytest.raises(InternalError, match=r"to_\w+ and to_\w+") as caught:
        rewrite("g (float[N] x) => (float[N] y) { y = Relu(x) }", to_abs, to_relu)
    assert caught.value.code == "E903"


def test_a_rule_that_reads_what_it_replaces_is_our_fault() -> None:
    @rule(op("Relu", X, name="old"))
    def cyclic(m: Match, b: Builder) -> Replacement:
        return b.op("Abs", m["old"])

    with pytest.raises(InternalError) as caught:
        rewrite("g (float[N] x) => (float[N] y) { y = Relu(x) }", cyclic)
    assert caught.value.code == "E904"


def test_the_limit_stops_after_that_many_edits() -> None:
    source = (
        "g (float[N] x) => (float[N] y, float[N] z) {"
        "a = Neg(x) b = Neg(a) y = Relu(b) c = Neg(x) d = Neg(c) z = Abs(d) }"
    )
    _, stats, model = rewrite(source, double_negation, limit=1)
    assert stats.fired["double_negation"] == 1
    assert len(model.graph) == 4


def test_dead_producers_go_with_the_edit_and_free_what_branches_read() -> None:
    model = text.parse(
        "g (float[N] x, bool c) => (float[N] y) { r = Relu(x) "
        "d = If(c) <then_branch = t () => (float[N] t) { t = Neg(r) },"
        "else_branch = e () => (float[N] e) { e = Abs(r) }> y = Sub(d, d) }"
    )
    rewriter = Rewriter(model, ShapeInference(model), Constants())
    last = model.graph[-1]
    rewriter.replace(
        last,
        [rewriter.builder(last, [last], "test").op("Abs", model.graph.inputs[0])],
        trust_shape=True,
    )
    rewriter.flush()
    assert [node.op_type for node in model.graph] == ["Abs"]
    assert scope.num_uses(model.graph.inputs[0]) == 1


def test_a_live_output_cannot_be_dropped() -> None:
    model = text.parse(
        "g (float[4] x) => (float[2] y, float[2] z) { y, z = Split<num_outputs=2>(x) }"
    )
    rewriter = Rewriter(model, ShapeInference(model), Constants())
    with pytest.raises(Refused, match="no replacement"):
        rewriter.replace(model.graph[0], [None, model.graph.inputs[0]])
    with pytest.raises(Refused, match="1 values for 2 outputs"):
        rewriter.replace(model.graph[0], [model.graph.inputs[0]])


def test_new_nodes_tell_where_they_come_from() -> None:
    @rule(op("Relu", op("Neg", X)))
    def fused(m: Match, b: Builder) -> Replacement:
        return b.op("Clip", m["x"], None, b.constant(np.float32(0.0)))

    _, _, model = rewrite(
        "g (float[N] x) => (float[N] y) { [first] a = Neg(x) [second] y = Relu(a) }", fused
    )
    origin = provenance.origin_of(model.graph[0])
    assert origin.sources == ("second", "first")
    assert origin.rules == ("fused",)


def test_time_is_linear_in_the_uses_of_a_shared_value() -> None:
    count = 6_000
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([4]))
    nodes = []
    for _ in range(count):
        first = ir.node("Neg", [x])
        nodes += [first, ir.node("Neg", first.outputs), ir.node("Relu", [])]
        nodes[-1] = ir.node("Relu", nodes[-2].outputs)
    for node in nodes:
        node.outputs[0].type, node.outputs[0].shape = x.type, x.shape
    total = ir.node("Sum", [node.outputs[0] for node in nodes[2::3]])
    total.outputs[0].type, total.outputs[0].shape = x.type, x.shape
    graph = ir.Graph([x], total.outputs, nodes=[*nodes, total], opset_imports={"": 23})
    model = ir.Model(graph, ir_version=10)
    rewriter = Rewriter(model, ShapeInference(model), Constants())
    stats = Worklist(rewriter, [double_negation]).run()
    assert stats.fired["double_negation"] == count
    assert len(graph) == count + 1


def test_readers_that_were_not_tried_again_are_told_of() -> None:
    """A pass that skipped some of many readers has not settled."""
    readers = "\n".join(f"r{i} = Neg(b)" for i in range(FANOUT + 1))
    outputs = ", ".join(f"float[2] r{i}" for i in range(FANOUT + 1))
    model = text.parse(
        f"agraph (float[2] x) => ({outputs}) {{ n = Neg(x) a = Neg(n) b = Abs(a) {readers} }}"
    )
    shapes = ShapeInference(model)
    shapes.infer_model()
    stats = Worklist(Rewriter(model, shapes, Constants()), [double_negation]).run()
    assert stats.fired == {"double_negation": 1}
    assert stats.skipped


def test_a_rule_that_needs_an_operator_is_not_asked_without_it() -> None:
    asked: list[str] = []

    @rule(op("Neg", X), needs=("Sqrt", "Pow"))
    def beyond(m: Match, b: Builder) -> Replacement:
        asked.append(m.root.op_type)
        return None

    rewrite("g (float[2] x) => (float[2] y) { y = Neg(x) }", beyond)
    assert not asked
    rewrite("g (float[2] x) => (float[2] y) { r = Sqrt(x) y = Neg(r) }", beyond)
    assert asked == ["Neg"]


def test_rules_are_chosen_once_for_a_set_of_operators() -> None:
    rules = RuleSet([double_negation, times_one])
    negations = rules.within(frozenset({("", "Neg"), ("", "Relu")}))
    assert negations.rules == (double_negation,)
    assert rules.within(frozenset({("", "Relu"), ("", "Neg")})) is negations
    assert rules.within(frozenset({("", "Neg"), ("", "Mul")})) is rules
    assert not rules.within(frozenset({("", "Relu")})).rules
    for number in range(2 * KEPT):
        named = frozenset({("", "Neg"), ("", f"Other{number}")})
        assert rules.within(named).rules == (double_negation,)
    assert len(rules._within) <= KEPT
