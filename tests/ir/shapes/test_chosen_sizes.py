"""Sizes that a model compares with numbers, chooses by a Where, and divides."""

from __future__ import annotations

import onnx_ir as ir
import pytest

import smelt
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference

CONSTANTS = """<int64[3] minus = {-1,-1,-1}, int64[3] ones = {1,1,1}, int64[1] one = {1},
    int64 eight = {8}, int64 neg = {-8}, int64 none = {0}, int64 unit = {1}, int64 first = {0}, int64[1] zero = {0}>"""


def shape_of(body: str, name: str, inputs: str = "float[B,S] x") -> list[int | str | None]:
    """Return the inferred dims of ``name``; invented symbols as ``?``."""
    model = text.parse(f"g ({inputs}) => (y) {CONSTANTS} {{ {body} }}", 18)
    ShapeInference(model).infer_model()
    (value,) = [v for node in model.graph for v in node.outputs if v.name == name]
    assert value.shape is not None
    return ["?" if str(dim).startswith("_d") else _plain(dim) for dim in value.shape]


def _plain(dim: int | ir.SymbolicDim) -> int | str | None:
    return dim if isinstance(dim, int) else dim.value


EXPANDED = (
    "b = Shape(x) s = Concat<axis=0>(one, b) {more} c = Equal(s, minus) t = Where(c, ones, s)"
)
EXPAND = "y = Expand(x, t)"


def test_no_size_is_minus_one() -> None:
    assert shape_of(EXPANDED.format(more="") + EXPAND, "y") == [1, "B", "S"]


def test_a_minus_one_equals_minus_one() -> None:
    body = (
        "b = Shape<end=1>(x) m = Neg(one) s = Concat<axis=0>(m, b, m)"
        " c = Equal(s, minus) t = Where(c, ones, s) y = Expand(x, t)"
    )
    assert shape_of(body, "y", "float[1,B,S] x") == [1, "B", "S"]


@pytest.mark.parametrize(
    "size",
    {
        "what is computed of data": "d = Cast<to=7>(f)",
        "a difference": "b = Shape<end=1>(x) d = Sub(b, one)",
        "an input": "d = Identity(i)",
    }.values(),
)
def test_sizes_that_may_be_minus_one_decide_nothing(size: str) -> None:
    body = f"{size} s = Concat<axis=0>(d, d, d) c = Equal(s, minus) t = Where(c, ones, s) {EXPAND}"
    dims = shape_of(body, "y", "float[B,1,1] x, float[1] f, int64[1] i")
    assert 1 not in dims


def test_zero_may_be_a_size() -> None:
    body = (
        "b = Shape(x) s = Concat<axis=0>(one, b) z = Sub(ones, ones) c = Equal(s, z)"
        " t = Where(c, ones, s) y = Expand(x, t)"
    )
    assert shape_of(body, "y")[1:] == ["?", "?"]


DIVIDED = {
    "nothing is left over": ("n = Mul(b, eight) d = Div(n, eight)", "B"),
    "something may be": ("d = Div(b, eight)", "floor(B/8)"),
    "a number below zero": ("d = Div(b, neg)", "?"),
    "zero": ("d = Div(b, none)", "?"),
    "by a size that it is a multiple of": (
        "c = Shape<start=1, end=2>(x) n = Mul(b, c) d = Div(n, c)",
        "B",
    ),
    "by a size that it may be no multiple of": (
        "c = Shape<start=1, end=2>(x) n = Add(b, c) d = Div(n, c)",
        "floor((B + S)/S)",
    ),
    "a difference": ("n = Sub(b, eight) d = Div(n, eight)", "?"),
}


@pytest.mark.parametrize(("size", "known"), DIVIDED.values(), ids=DIVIDED.keys())
def test_sizes_divided(size: str, known: str) -> None:
    body = f"h = Shape(x) b = Gather(h, first) {size} v = Unsqueeze(d, zero) y = ConstantOfShape(v)"
    assert shape_of(body, "y") == [known]


BOUNDED = {
    "the lesser of a size and a number": ("d = Min(b, eight)", "Min(B, 8)"),
    "the greater of a size and a number": ("d = Max(b, eight)", "Max(B, 8)"),
    "a size and itself": ("d = Min(b, b)", "B"),
    "the lesser of what data tell and a number": ("d = Min(k, eight)", "Min(_d0, 8)"),
    "the greater of what data tell and a number": ("d = Max(k, eight)", "?"),
    "the lesser of what data tell and 1": ("d = Min(k, unit)", "?"),
    "the lesser of two that data tell": ("l = Add(k, k) d = Min(k, l)", "?"),
    "nothing and a negative size": ("m = Mul(b, neg) d = Max(m, none)", 0),
}


@pytest.mark.parametrize(("size", "known"), BOUNDED.values(), ids=BOUNDED)
def test_the_lesser_and_the_greater_of_sizes(size: str, known: str | int) -> None:
    body = (
        "h = Shape(x) b = Gather(h, first) u = NonZero(x) w = Shape<start=1>(u) k = Squeeze(w) "
        f"{size} v = Unsqueeze(d, zero) y = ConstantOfShape(v)"
    )
    assert shape_of(body, "y") == [known]


def test_dims_named_by_an_exporter_get_input_symbols() -> None:
    graph = """g (float[batch,past,4] k, float[batch,1,4] n, float[4,4] w)
        => (float[Concat_3_dim_0,Concat_3_dim_1,4] all, float[batch,M,4] y) <int64[3] s = {-1,1,4}> {
        z = Identity(n) r = Reshape(z, s) all = Concat<axis=1>(k, r) y = MatMul(all, w)
    }"""
    model = text.parse(graph, 18)
    inference = ShapeInference(model)
    inference.infer_model()
    everything, y = model.graph.outputs
    assert str(everything.shape) == "[batch,past + 1,4]"
    assert str(y.shape) == "[batch,past + 1,4]"
    inference.restore_interface()
    assert str(everything.shape) == "[Concat_3_dim_0,Concat_3_dim_1,4]"
    done = smelt.optimize(text.parse(graph, 18), verify="each")
    assert str(done.graph.outputs[0].shape) == "[Concat_3_dim_0,Concat_3_dim_1,4]"


@pytest.mark.parametrize(
    ("places", "size"),
    {
        "Sub(n, i)": ["B"],
        "Identity(n)": ["B + 1"],
        "Sub(n, eight)": ["?"],  # B - 7 may be below 0
    }.items(),
)
def test_rows_counted_backwards(places: str, size: list[str]) -> None:
    """A flip that is written as a Gather: its indices are ``Range(B - 1, -1, -1)``."""
    body = (
        "b = Shape<end=1>(x) i = Squeeze(one) n = Squeeze(b) minus_one = Neg(i)"
        f" last = {places} y = Range(last, minus_one, minus_one)"
    )
    assert shape_of(body, "y") == size


def test_one_condition_chooses_for_all_sizes() -> None:
    """No size is -1, so each element is that of the shape."""
    body = "b = Shape(x) h = Shape<end=1>(x) m = Neg(one) c = Equal(h, m) t = Where(c, {}, b)"
    for chosen in ("m", "two"):
        more = "two = Concat<axis=0>(m, m) " if chosen == "two" else ""
        chain = body.replace("c = ", f"{more}c = ").format(chosen)
        assert shape_of(f"{chain} y = ConstantOfShape(t)", "y") == ["B", "S"], chosen
