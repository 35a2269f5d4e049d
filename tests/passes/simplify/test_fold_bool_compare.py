"""Comparisons of cast booleans become booleans, and comparisons of bounded sizes constants."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from rewrites import check_rewrite, check_unchanged, run_pass

from smelt.ir import text
from smelt.ir.bounds import note_bounds
from smelt.ir.constants import Constants
from smelt.passes.simplify.fold_bool_compare import fold_bool_compare

SAME = {
    "0 is less": "c = Cast<to=6>(p) y = Less(i, c)",
    "at least 1": "c = Cast<to=6>(p) y = GreaterOrEqual(c, one)",
    "equal to 1": "c = Cast<to=6>(p) y = Equal(one, c)",
    "more than a half": "c = Cast<to=1>(p) y = Greater(c, half)",
    "equal to true": "y = Equal(p, true)",
    "a number that is not 0, as truth": "c = Where(p, half, zero) y = Cast<to=9>(c)",
}
OPPOSITE = {
    "less than 1": "c = Cast<to=6>(p) y = Less(c, one)",
    "1 is more": "c = Cast<to=6>(p) y = Greater(one, c)",
    "at most 0": "c = Cast<to=6>(p) y = LessOrEqual(c, i)",
    "equal to 0": "c = Cast<to=6>(p) y = Equal(c, i)",
    "equal to false": "y = Equal(false, p)",
    "less than a half": "c = Cast<to=1>(p) y = Less(c, half)",
    "0, or the lowest number, as truth": "c = Where(p, zero, low) y = Cast<to=9>(c)",
    "-0 and NaN": "c = Where(p, minus, nan) y = Cast<to=9>(c)",
}
G = (
    "g (bool[N] p) => (bool[N] y) <int32 one = {1}, int32 i = {0}, float half = {0.5}, "
    "bool true = {1}, bool false = {0}, float zero = {0}, float low = {-3.4e38}, "
    "float minus = {-0.0}, float nan = {nan}>"
)
HEAD = "g (bool[N] p) => (bool[N] y)"


@pytest.mark.parametrize("body", SAME.values(), ids=SAME.keys())
def test_is_it(body: str) -> None:
    check_rewrite(
        fold_bool_compare,
        f"{G} {{ {body.replace('y =', 'q =')} y = Not(q) }}",
        f"{HEAD} {{ y = Not(p) }}",
    )


@pytest.mark.parametrize("body", OPPOSITE.values(), ids=OPPOSITE.keys())
@pytest.mark.parametrize("opset", [13, 25])
def test_is_its_opposite(body: str, opset: int) -> None:
    check_rewrite(fold_bool_compare, f"{G} {{ {body} }}", f"{HEAD} {{ y = Not(p) }}", opset=opset)


@pytest.mark.parametrize("to", [2, 3, 7, 10, 11, 12, 13])
def test_any_number(to: int) -> None:
    check_rewrite(
        fold_bool_compare,
        f"{HEAD} <bool t = {{1}}> {{ o = Cast<to={to}>(t) c = Cast<to={to}>(p) y = Less(c, o) }}",
        f"{HEAD} {{ y = Not(p) }}",
    )


def test_the_number_stays_for_others() -> None:
    check_rewrite(
        fold_bool_compare,
        "g (bool[N] p) => (bool[N] y, int32[N] c) <int32 one = {1}> "
        "{ c = Cast<to=6>(p) y = Less(c, one) }",
        "g (bool[N] p) => (bool[N] y, int32[N] c) { c = Cast<to=6>(p) y = Not(p) }",
    )


KEPT = {
    "true of both": f"{G} {{ c = Cast<to=6>(p) y = GreaterOrEqual(c, i) }}",
    "true of neither": f"{G} {{ c = Cast<to=6>(p) y = Less(c, i) }}",
    "what is no truth value": "g (int64[N] p) => (bool[N] y) <int32 one = {1}> "
    "{ c = Cast<to=6>(p) y = Less(c, one) }",
    "a constant of higher rank": "g (bool[N] p) => (bool[1,N] y) <int32[1,1] one = {1}> "
    "{ c = Cast<to=6>(p) y = Less(c, one) }",
    "a choice of higher rank": "g (bool[N] p) => (bool[1,N] y) <int32[1,1] o = {1}, int32 z = {0}> "
    "{ c = Where(p, o, z) y = Cast<to=9>(c) }",
    "a choice between two that are not 0": f"{G} {{ c = Where(p, half, low) y = Cast<to=9>(c) }}",
    "two constants": "g (bool[2] p) => (bool[2] y) <int32[2] o = {1, 0}> "
    "{ c = Cast<to=6>(p) y = Less(c, o) }",
    "not a constant": "g (bool[N] p, int32 o) => (bool[N] y) { c = Cast<to=6>(p) y = Less(c, o) }",
    "NaN": "g (bool[N] p) => (bool[N] y) <float o = {nan}> { c = Cast<to=1>(p) y = Less(c, o) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fold_bool_compare, graph)


SIZES = (
    "g (float[N] x, float[M] z) => (bool[1] y) <int64[1] two = {{2}}, int64[1] nine = {{9}}, "
    "int64[1] none = {{0}}> {{ n = Shape(x) m = Shape(z) e = Sub(n, two) {body} }}"
)
DECIDED = {
    "y = GreaterOrEqual(n, two)": True,
    "y = Greater(n, two)": True,
    "y = Less(n, two)": False,
    "y = LessOrEqual(nine, e)": False,
    "y = Equal(n, two)": False,
    "y = Less(m, e)": None,
    "y = Less(n, m)": False,
    "y = LessOrEqual(nine, n)": None,
    "k = NonZero(x) j = Shape<start=1>(k) y = Greater(j, none)": None,
}


def answered(body: str, *, checked: bool = True) -> list[bool] | None:
    """Return the constant result of a comparison of sizes N in 3..9 and M in 0..3, None if it
    stays."""
    model = text.parse(SIZES.format(body=body))
    note_bounds(model, {"N": (3, 9), "M": (0, 3)}, checked=checked)
    run_pass(fold_bool_compare, model)
    node = model.graph.outputs[0].producer()
    assert node is not None
    if node.op_type != "Identity":
        return None
    found = Constants().get(node.inputs[0])
    assert found is not None
    return list(found.tolist())


@pytest.mark.parametrize(("body", "answer"), DECIDED.items())
def test_bounds_decide(body: str, answer: bool | None) -> None:
    assert answered(body) == (None if answer is None else [answer])


def test_bounds_that_no_run_is_held_to_say_nothing() -> None:
    assert answered("y = GreaterOrEqual(n, two)", checked=False) is None


def test_a_size_that_no_input_has_by_itself_says_nothing() -> None:
    """A run cannot read N off a dim of N*M, so its bounds are not checked."""
    model = text.parse(SIZES.format(body="y = GreaterOrEqual(n, two)"))
    model.graph.inputs[0].shape = ir.Shape([ir.SymbolicDim("N*M")])
    note_bounds(model, {"N": (3, 9), "M": (0, 3)}, checked=True)
    run_pass(fold_bool_compare, model)
    node = model.graph.outputs[0].producer()
    assert node is not None
    assert node.op_type == "GreaterOrEqual"


def test_a_size_within_a_body_is_not_that_of_an_input() -> None:
    model = text.parse(
        "g (float[N] x, int64 k) => (float[N] y) { y = Loop(k, , x) <body = b (int64 i, bool c, "
        "float[N] s) => (bool d, float[N] t) { n = Shape(s) two = Constant<value_ints=[2]>() "
        "m = Greater(n, two) o = Constant<value_ints=[0]>() d = Squeeze(m, o) t = Neg(s) }> }"
    )
    note_bounds(model, {"N": (3, 9)}, checked=True)
    assert run_pass(fold_bool_compare, model).rewrites == 0


SIDES = {
    "a side that is not constant": "g (bool[N] p, float a) => (bool[N] y) <float b = {0}>",
    "sides of several numbers": "g (bool[2] p) => (bool[2] y) <float[2] a = {1,1}, float[2] b = {0,0}>",
    "texts": 'g (bool[N] p) => (bool[N] y) <string a = {"1"}, string b = {"0"}>',
}


@pytest.mark.parametrize("head", SIDES.values(), ids=SIDES.keys())
def test_the_truth_of_other_sides_stays(head: str) -> None:
    check_unchanged(fold_bool_compare, f"{head} {{ c = Where(p, a, b) y = Cast<to=9>(c) }}")
