"""Edge rows that are mirrored, repeated or wrapped by hand become one Pad."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.tensors.use_reflection_padding import use_reflection_padding

LAST = 2**63 - 1
FIRST = -(2**63)


def cut(name: str, start: int, end: int, axis: int = 1, step: int = 1, of: str = "x") -> str:
    """Return the text of a Slice along one axis."""
    numbers = {"b": start, "e": end, "a": axis, "s": step}
    lines = [f"{name}{k} = Constant<value_ints=[{v}]>()" for k, v in numbers.items()]
    return "\n".join([*lines, f"{name} = Slice({of}, {name}b, {name}e, {name}a, {name}s)\n"])


def graph(
    body: str, pieces: str, result: str, axis: int = 1, *, more: str = "", x: str = "float[N,5,3]"
) -> str:
    dtype = x.split("[", maxsplit=1)[0]
    return f"g ({x} x) => ({dtype}{result} y{more}) {{ {body} y = Concat<axis={axis}>({pieces}) }}"


def padded(pads: str, result: str, x: str = "float[N,5,3]", mode: str = "reflect") -> str:
    dtype = x.split("[", maxsplit=1)[0]
    return (
        f"g ({x} x) => ({dtype}{result} y) {{ p = Constant<value_ints=[{pads}]>() "
        f'y = Pad<mode="{mode}">(x, p) }}'
    )


PADDED = {
    "one row each side": (
        graph(cut("l", 1, 2) + cut("r", -2, -1), "l, x, r", "[N,7,3]"),
        padded("0,1,0,0,1,0", "[N,7,3]"),
    ),
    "two and one, by sizes of either sign": (
        graph(
            cut("l", -3, 3) + cut("k", 1, -3) + cut("r", 3, 4, axis=-2), "l, k, x, r", "[N,8,3]", -2
        ),
        padded("0,2,0,0,1,0", "[N,8,3]"),
    ),
    "one side only": (
        graph(cut("r", -2, -1) + cut("s", -3, -2), "x, r, s", "[N,7,3]"),
        padded("0,0,0,0,2,0", "[N,7,3]"),
    ),
    "as many as there are": (
        graph(cut("l", 4, 0, step=-1) + cut("r", -2, FIRST, step=-1), "l, x, r", "[N,13,3]"),
        padded("0,4,0,0,4,0", "[N,13,3]"),
    ),
    "another axis": (
        graph(cut("l", 1, 2, axis=2) + cut("r", 1, 2, axis=2), "l, x, r", "[N,5,5]", 2),
        padded("0,0,1,0,0,1", "[N,5,5]"),
    ),
    "gathered rows": (
        graph(
            "i = Constant<value_ints=[2,1]>() j = Constant<value_ints=[-2]>() "
            "l = Gather<axis=1>(x, i) r = Gather<axis=-2>(x, j)",
            "l, x, r",
            "[N,8,3]",
        ),
        padded("0,2,0,0,1,0", "[N,8,3]"),
    ),
    "the same row on both sides": (
        graph(cut("l", 1, 2), "l, x, l", "[N,5,3]", x="float[N,3,3]"),
        padded("0,1,0,0,1,0", "[N,5,3]", x="float[N,3,3]"),
    ),
}


@pytest.mark.parametrize(("before", "after"), PADDED.values(), ids=PADDED.keys())
def test_becomes_a_pad(before: str, after: str) -> None:
    check_rewrite(use_reflection_padding, before, after)


@pytest.mark.parametrize("dtype", ["float16", "double", "int8", "int64", "bool"])
def test_other_element_types(dtype: str) -> None:
    x = f"{dtype}[N,5,3]"
    before = graph(cut("l", 1, 2) + cut("r", -2, -1), "l, x, r", "[N,7,3]", x=x)
    check_rewrite(use_reflection_padding, before, padded("0,1,0,0,1,0", "[N,7,3]", x=x))


def test_rows_then_columns() -> None:
    body = cut("l", 1, 2) + cut("r", -2, -1) + "h = Concat<axis=1>(l, x, r)"
    body += cut("t", 1, 2, axis=2, of="h") + cut("u", -2, -1, axis=2, of="h")
    check_rewrite(
        use_reflection_padding,
        graph(body, "t, h, u", "[N,7,5]", 2),
        "g (float[N,5,3] x) => (float[N,7,5] y) { p = Constant<value_ints=[0,1,0,0,1,0]>() "
        'q = Constant<value_ints=[0,0,1,0,0,1]>() h = Pad<mode="reflect">(x, p) '
        'y = Pad<mode="reflect">(h, q) }',
    )


REPEAT = (
    "n = Unsqueeze({0}, two) t = Constant<value_ints=[1,1,2,1]>() w = Expand(n, t) "
    "s = Constant<value_ints=[0,2,3]>() k = Reshape(w, s)"
)
OTHER_MODES = {
    "the edge, repeated": (
        graph(cut("l", 0, 1) + cut("r", -1, LAST), "l, x, r, r", "[N,8,3]"),
        padded("0,1,0,0,2,0", "[N,8,3]", mode="edge"),
    ),
    "the edge, by Tile": (
        graph(
            cut("l", 0, 1) + "t = Constant<value_ints=[1,3,1]>() k = Tile(l, t)",
            "k, x",
            "[N,8,3]",
        ),
        padded("0,3,0,0,0,0", "[N,8,3]", mode="edge"),
    ),
    "the edge, as jnp.repeat writes it": (
        graph(
            "two = Constant<value_ints=[2]>()" + cut("l", -1, LAST) + REPEAT.format("l"),
            "x, k",
            "[N,7,3]",
        ),
        padded("0,0,0,0,2,0", "[N,7,3]", mode="edge"),
    ),
    "the other end": (
        graph(cut("l", 3, 5) + cut("r", 0, 1), "l, x, r", "[N,8,3]"),
        padded("0,2,0,0,1,0", "[N,8,3]", mode="wrap"),
    ),
    "all of the other end": (
        graph(
            "i = Constant<value_ints=[0,1,2,3,4]>() l = Gather<axis=1>(x, i)", "x, l", "[N,10,3]"
        ),
        padded("0,0,0,0,5,0", "[N,10,3]", mode="wrap"),
    ),
}


@pytest.mark.parametrize(("before", "after"), OTHER_MODES.values(), ids=OTHER_MODES.keys())
def test_becomes_a_pad_of_another_mode(before: str, after: str) -> None:
    check_rewrite(use_reflection_padding, before, after)


@pytest.mark.parametrize("opset", [13, 18, 25])
def test_any_opset(opset: int) -> None:
    before, after = OTHER_MODES["the edge, repeated"]
    check_rewrite(use_reflection_padding, before, after, opset=opset)


def test_wrap_needs_opset_19() -> None:
    before, after = OTHER_MODES["the other end"]
    check_unchanged(use_reflection_padding, before, opset=18)
    check_rewrite(use_reflection_padding, before, after, opset=19)


def test_wrap_needs_sizes_that_are_not_0() -> None:
    body = cut("a", 0, LAST, axis=0, of="z") + cut("l", 4, 5, of="x") + cut("r", 0, 1, of="x")
    before = graph(
        "o = NonZero(w) t = Transpose<perm=[1,0]>(o) x = Pad(t, p)" + body, "l, x, r", "[K,7]"
    )
    source = before.replace("(float[N,5,3] x)", "(float[N] w, int64[K,1] z)").replace(
        "float[K,7] y) {", "int64[K,7] y) <int64[4] p = {0,2,0,2}> {"
    )
    check_unchanged(use_reflection_padding, source)


ONE_EACH = cut("l", 1, 2) + cut("r", -2, -1)
KEPT = {
    "a slice is an output": graph(ONE_EACH, "l, x, r", "[N,7,3]", more=", float[N,1,3] l"),
    "a slice has another reader": graph(
        f"{ONE_EACH} z = Neg(r)", "l, x, r", "[N,7,3]", more=", float[N,1,3] z"
    ),
    "mirrored with the edge": graph(cut("l", 1, FIRST, step=-1), "l, x", "[N,7,3]"),
    "of unlike kinds": graph(cut("l", 0, 1) + cut("r", -2, -1), "l, x, r", "[N,7,3]"),
    "a repeated row of another place": graph(
        cut("l", 1, 2) + "t = Constant<value_ints=[1,2,1]>() k = Tile(l, t)", "k, x", "[N,7,3]"
    ),
    "two rows, repeated": graph(
        cut("l", 0, 2) + "t = Constant<value_ints=[1,2,1]>() k = Tile(l, t)", "k, x", "[N,9,3]"
    ),
    "a row repeated along another axis": graph(
        cut("l", 0, 1) + "s = Constant<value_ints=[1,3,1]>() k = Reshape(l, s) "
        "t = Constant<value_ints=[1,1,3]>() e = Expand(k, t)",
        "e, x",
        "[1,8,3]",
        x="float[1,5,3]",
    ),
    "a repeated row whose dims trade places": graph(
        cut("l", 0, 1) + "s = Constant<value_ints=[6,1,4]>() k = Reshape(l, s) "
        "t = Constant<value_ints=[6,3,4]>() e = Expand(k, t) u = Constant<value_ints=[4,3,6]>() "
        "w = Reshape(e, u)",
        "w, x",
        "[4,8,6]",
        x="float[4,5,6]",
    ),
    "nothing beside the axis": graph(
        cut("l", 1, 2) + cut("r", -2, -1), "l, x, r", "[0,7,3]", x="float[0,5,3]"
    ),
    "more rows than there are": graph(
        "i = Constant<value_ints=[4,3,2,1,0]>() l = Gather<axis=1>(x, i)", "l, x", "[N,10,3]"
    ),
    "rows in the wrong order": graph(cut("l", 1, 2) + cut("k", 2, 3), "l, k, x", "[N,7,3]"),
    "rows of another axis": graph(cut("l", 0, 1, axis=0), "l, x", "[1,10,3]", x="float[1,5,3]"),
    "the size is not known": graph(ONE_EACH, "l, x, r", "[N,K,3]", x="float[N,S,3]"),
    "rows of another tensor": graph(
        f"w = Neg(x) {cut('l', 1, 2, of='w')} {cut('r', -2, -1)}", "l, x, r", "[N,7,3]"
    ),
    "one row, which has no mirror": graph(cut("l", 1, 2), "l, x", "[N,1,3]", x="float[N,1,3]"),
    "the tensor twice": graph("", "x, x", "[N,10,3]"),
    "the tensor twice, and a slice": graph(cut("l", 1, 2), "l, x, x", "[N,11,3]"),
    "a slice of two axes": graph(
        "b = Constant<value_ints=[1,0]>() e = Constant<value_ints=[2,3]>() "
        "a = Constant<value_ints=[1,2]>() l = Slice(x, b, e, a)",
        "l, x",
        "[N,6,3]",
    ),
    "no Pad of bfloat16": graph(ONE_EACH, "l, x, r", "[N,7,3]", x="bfloat16[N,5,3]"),
    "a row that callers may move": "g (float[N,5,3] x, int64[1] i = {1}) => (float[N,6,3] y) "
    "{ l = Gather<axis=1>(x, i) y = Concat<axis=1>(l, x) }",
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_keeps(text: str) -> None:
    check_unchanged(use_reflection_padding, text)
