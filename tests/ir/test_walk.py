"""A walk: what it takes, what stands against replacing that, and what a rewrite makes of it."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir import provenance, text
from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Replacement, rule
from smelt.ir.walk import Walk, attempt, only_reader, producer_of, reader_outside
from smelt.passes.base import PassContext, rule_pass

CHAIN = "a = Neg(x) b = Abs(a) c = Exp(b) y = Log(c)"


def parsed(body: str = CHAIN, outputs: str = "float[4] y") -> ir.Model:
    return text.parse(f"g (bool i, float[4] x) => ({outputs}) {{ {body} }}", 23)


def nodes(model: ir.Model) -> dict[str, ir.Node]:
    """The nodes of the main graph by the name of their first result."""
    return {str(node.outputs[0].name): node for node in model.graph}


def names(walk: Walk) -> list[str | None]:
    return [node.outputs[0].name for node in walk.nodes]


def whole(model: ir.Model) -> Walk:
    """A walk from y up the chain to a."""
    walk = Walk(nodes(model)["y"])
    for op_type in ("Exp", "Abs", "Neg"):
        walk.up(list(walk.nodes)[-1].inputs[0], op_type)
    return walk


def test_it_takes_producers_of_the_kinds_that_are_asked_for() -> None:
    named = nodes(parsed())
    walk = Walk(named["y"])
    assert walk.up(named["y"].inputs[0], "Exp", "Sin") is named["c"]
    assert walk.up(named["c"].inputs[0], "Neg") is None
    assert walk.up(None, "Neg") is None
    assert names(walk) == ["y", "c"]


def test_it_goes_down_to_the_only_reader() -> None:
    named = nodes(parsed())
    walk = Walk(named["a"])
    assert walk.down(("Abs",)) is named["b"]
    assert walk.down(("Abs",)) is None
    assert walk.end is named["b"]
    assert names(walk) == ["a", "b"]


@pytest.mark.parametrize("more", ["z = Neg(a)", "z = Mul(a, b)"])
def test_a_result_that_two_read_has_no_only_reader(more: str) -> None:
    named = nodes(parsed(f"{CHAIN} {more}", "float[4] y, float[4] z"))
    assert only_reader(named["a"].outputs[0], "Abs") is None


def test_a_reader_that_has_it_twice_or_second_is_not_walked_into() -> None:
    named = nodes(parsed("a = Neg(x) b = Abs(x) y = Sub(b, a) z = Mul(y, y)", "float[4] z"))
    assert only_reader(named["a"].outputs[0], "Sub") is None
    assert only_reader(named["b"].outputs[0], "Sub") is named["y"]
    assert only_reader(named["y"].outputs[0], "Mul") is None


def test_operators_of_other_domains_and_unknown_attributes_are_not_looked_through() -> None:
    for node in ("h.y.Neg(x)", "Neg<unheard_of=1>(x)"):
        model = parsed(f"a = {node} y = Abs(a)")
        assert producer_of(nodes(model)["y"].inputs[0], "Neg") is None


def test_a_walk_returns_to_its_mark() -> None:
    walk = whole(parsed())
    mark = walk.mark()
    walk.down(("Neg",))
    walk.take([ir.Node("", "Sin", [])])
    walk.back(mark)
    assert (names(walk), walk.end) == (["y", "c", "b", "a"], walk.root)


def test_an_attempt_keeps_nodes_only_if_it_finds_something() -> None:
    class Reader:
        def __init__(self, walk: Walk) -> None:
            self.walk = walk

        @attempt
        def below(self, expected: str) -> bool:
            node = self.walk.up(self.walk.root.inputs[0], "Exp")
            return self.walk.up(node.inputs[0] if node else None, expected) is not None

    reader = Reader(Walk(nodes(parsed())["y"]))
    assert not reader.below("Neg")
    assert names(reader.walk) == ["y"]
    assert reader.below("Abs")
    assert names(reader.walk) == ["y", "c", "b"]


AGAINST = {
    "nothing": (CHAIN, "float[4] y", None),
    "the end is read and returned": (f"{CHAIN} z = Neg(y)", "float[4] y, float[4] z", None),
    "an output": (CHAIN, "float[4] y, float[4] b", "the result of the Abs is an output"),
    "another reader": (
        f"{CHAIN} z = Neg(c)",
        "float[4] y, float[4] z",
        "the result of the Exp is read elsewhere",
    ),
    "a capture": (
        f"{CHAIN} z = If(i) <then_branch = t () => (float[4] u) {{ u = Neg(a) }}, "
        "else_branch = e () => (float[4] v) { v = Neg(x) }>",
        "float[4] y, float[4] z",
        "the result of the Neg is read in an inner graph",
    ),
    "a capture that a branch returns": (
        f"{CHAIN} z = If(i) <then_branch = t () => (float[4] u) {{ u = Identity(a) }}, "
        "else_branch = e () => (float[4] v) { v = Neg(x) }>",
        "float[4] y, float[4] z",
        "the result of the Neg is read in an inner graph",
    ),
}


@pytest.mark.parametrize(("body", "outputs", "reason"), AGAINST.values(), ids=AGAINST.keys())
def test_obstacles_to_a_replacement_are_named(body: str, outputs: str, reason: str | None) -> None:
    assert whole(parsed(body, outputs)).obstacle() == reason


def test_nodes_of_another_graph_are_not_taken_and_stand_against() -> None:
    model = parsed(
        "a = Neg(x) y = If(i) <then_branch = t () => (float[4] u) { u = Abs(a) }, "
        "else_branch = e () => (float[4] v) { v = Neg(x) }>"
    )
    outer, carrier = model.graph
    walk = Walk(carrier.attributes["then_branch"].as_graph()[0])
    assert walk.up(walk.root.inputs[0], "Neg") is None
    walk.take([outer])
    assert walk.obstacle() == "the Neg lies in another graph"


def test_a_reader_outside() -> None:
    named = nodes(parsed(f"{CHAIN} z = Neg(a)", "float[4] y, float[4] z"))
    value = named["a"].outputs[0]
    assert reader_outside(value, {named["b"], named["z"]}) is None
    assert reader_outside(value, {named["z"]}) is named["b"]


@rule(op("Log", var("c")))
def upwards(m: Match, b: Builder) -> Replacement:
    """Log(Exp(x)) is x, however it were written."""
    walk = m.walk()
    exp = walk.up(m["c"], "Exp")
    if exp is None:
        return None
    if against := m.replaces(walk):
        return against
    return b.op("Identity", exp.inputs[0])


@rule(op("Neg", var("x")))
def downwards(m: Match, b: Builder) -> Replacement:
    """Abs(Neg(x)) is Abs(x)."""
    walk = m.walk()
    if walk.down(("Abs",)) is None:
        return None
    return m.replaces(walk) or b.op("Abs", m["x"])


def test_new_nodes_originate_from_all_nodes_of_the_walk() -> None:
    model = parsed()
    provenance.number(model.graph)
    stats = rule_pass("walks", "Walks.", [upwards, downwards]).run(PassContext.of(model))
    assert stats.fired == {"upwards": 1, "downwards": 1}
    assert [node.op_type for node in model.graph] == ["Abs", "Identity"]
    assert [provenance.origin_of(node).nodes for node in model.graph] == [(0, 1), (3, 2)]


def test_an_obstacle_is_a_near_miss() -> None:
    model = parsed(CHAIN, "float[4] y, float[4] c")
    stats = rule_pass("walks", "Walks.", [upwards]).run(PassContext.of(model))
    assert ("upwards", "the result of the Exp is an output") in stats.missed
