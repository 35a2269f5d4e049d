"""Sizes that a fold reveals reach all readers."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.compiler import optimize_model
from smelt.ir import text

SIZES: dict[str, str] = {
    "expand idiom": """
        minus = Constant<value_ints=[3, -1]>()  rank = Constant<value_ints=[2]>()
        ones = ConstantOfShape<value=int64[1]{1}>(rank)
        bound = Constant<value_int=-1>()  scaled = Mul(ones, bound)
        same = Equal(minus, scaled)  sizes = Where(same, ones, minus)""",
    "Range": """
        from = Constant<value_int=3>() to = Constant<value_int=5>() by = Constant<value_int=1>()
        sizes = Range(from, to, by)""",
    "CumSum": """
        parts = Constant<value_ints=[3, 1]>() axis = Constant<value_int=0>()
        sizes = CumSum(parts, axis)""",
    "Tile": """
        one = Constant<value_ints=[4]>() times = Constant<value_ints=[2]>()
        sizes = Tile(one, times)""",
    "Expand": """
        one = Constant<value_ints=[4]>() two = Constant<value_ints=[2]>()
        sizes = Expand(one, two)""",
    "Abs": "parts = Constant<value_ints=[-4, -4]>() sizes = Abs(parts)",
    "Neg": "parts = Constant<value_ints=[-4, -4]>() sizes = Neg(parts)",
    "Clip": """
        parts = Constant<value_ints=[9, 4]>() low = Constant<value_int=1>()
        high = Constant<value_int=4>() sizes = Clip(parts, low, high)""",
    "Mod": """
        parts = Constant<value_ints=[9, 4]>() by = Constant<value_ints=[5, 5]>()
        sizes = Mod(parts, by)""",
    "ArgMax": """
        rows = Constant<value=float[2, 5]{0, 0, 0, 0, 9, 0, 0, 0, 0, 9}>()
        sizes = ArgMax<axis=1, keepdims=0>(rows)""",
    "ReduceSum": """
        rows = Constant<value=int64[2, 2]{1, 3, 2, 2}>() axis = Constant<value_ints=[1]>()
        sizes = ReduceSum<keepdims=0>(rows, axis)""",
    "NonZero": """
        flags = Constant<value=int64[6]{0, 0, 0, 0, 1, 1}>() rows = NonZero(flags)
        ends = Constant<value_ints=[2]>() last = Reshape(rows, ends)
        four = Constant<value_int=4>() sizes = Min(last, four)""",
    "TopK": """
        parts = Constant<value_ints=[1, 4, 4]>() k = Constant<value_ints=[2]>()
        sizes, places = TopK(parts, k)""",
    "Compress": """
        parts = Constant<value_ints=[1, 4, 4]>() keep = Constant<value=bool[3]{0, 1, 1}>()
        sizes = Compress<axis=0>(parts, keep)""",
    "Cast of floats": """
        parts = Constant<value_floats=[4.0, 4.0]>() sizes = Cast<to=7>(parts)""",
    "Ceil of a quotient": """
        parts = Constant<value_floats=[15.0, 16.0]>() by = Constant<value_float=4.0>()
        rest = Div(parts, by)  ceiling = Ceil(rest)  sizes = Cast<to=7>(ceiling)""",
}


@pytest.mark.parametrize("source", SIZES)
def test_readers_of_a_fold_know_their_sizes(source: str) -> None:
    """``x`` is expanded to 4 or (3, 4) rows, and a Slice that takes all rows is dropped."""
    model = text.parse(
        f"""agraph (float[1, 4] x, float[4, 4] w, float[4] b) => (float[M, N] y) {{
            {SIZES[source]}
            spread = Expand(x, sizes)
            product = MatMul(spread, w)  sum = Add(product, b)
            all = Shape(sum)  start = Constant<value_ints=[0, 0]>()
            whole = Slice(sum, start, all)
            y = Relu(whole)
        }}""",
        23,
    )
    optimize_model(model)
    assert [node.op_type for node in model.graph] == ["Expand", "Gemm", "Relu"]
    assert model.graph[1].outputs[0].shape == ir.Shape([_rows(source), 4])


def _rows(source: str) -> int:
    return {"expand idiom": 3, "Range": 3, "CumSum": 3}.get(source, 4)


CAPTURED = """
agraph (float[1, 4] x, bool c) => (float[M, 4] y) {
    parts = Constant<value_ints=[-3, -4]>()  sizes = Abs(parts)
    spread = Expand(x, sizes)
    z = If (c) <
        then_branch = yes () => (float[A, D] p) { p = Neg(spread) },
        else_branch = no () => (float[E, F] q) { q = Abs(spread) }
    >
    all = Shape(z)
    wide = Reshape(z, all)
    y = Relu(wide)
}
"""


def test_sizes_reach_branches_and_their_results() -> None:
    model = text.parse(CAPTURED, 23)
    optimize_model(model)
    assert [node.op_type for node in model.graph] == ["Expand", "If", "Relu"]
    branch = model.graph[1].attributes["then_branch"].as_graph()
    assert branch.outputs[0].shape == ir.Shape([3, 4])
    assert model.graph[1].outputs[0].shape == ir.Shape([3, 4])


def test_the_interface_stays_as_it_is_declared() -> None:
    model = text.parse(CAPTURED, 23)
    optimize_model(model)
    assert str(model.graph.outputs[0].shape) == "[M,4]"


CARRIED = """
agraph (float[1, 4] x, int64 n) => (float[M, 4] y) {
    parts = Constant<value_ints=[-3, -4]>()  sizes = Abs(parts)
    start = Expand(x, sizes)
    going = Constant<value=bool{1}>()
    z = Loop (n, going) <
        body = round (int64 i, bool go, float[P, Q] a) => (bool on, float[R, S] b) {
            on = Identity(go)
            t = Neg(a)
            b = Relu(t)
        }
    >
    y = Relu(z)
}
""".replace("Loop (n, going)", "Loop (n, going, start)")


def test_sizes_reach_loop_bodies_and_their_results() -> None:
    model = text.parse(CARRIED, 23)
    optimize_model(model)
    loop = next(node for node in model.graph if node.op_type == "Loop")
    body = loop.attributes["body"].as_graph()
    assert body.inputs[2].shape == ir.Shape([3, 4])
    assert body.outputs[1].shape == ir.Shape([3, 4])
    assert loop.outputs[0].shape == ir.Shape([3, 4])


def test_a_loop_that_appends_keeps_its_sizes_open() -> None:
    model = text.parse(CARRIED.replace("b = Relu(t)", "b = Concat<axis=0>(t, a)"), 23)
    optimize_model(model)
    loop = next(node for node in model.graph if node.op_type == "Loop")
    assert loop.outputs[0].shape is None or not loop.outputs[0].shape.is_static()
