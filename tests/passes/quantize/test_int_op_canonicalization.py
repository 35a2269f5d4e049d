import re

import pytest
from rewrites import check_rewrite, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.quantize.int_op_canonicalization import int_op_canonicalization as the_pass

NUMBERS = (
    "int64[2] flat = {0, -1}, int64[1] first = {0}, int64[1] last = {-1}, int64[1] two = {2},"
    "int64[1] five = {5}, int64[5] wide = {3, 1, 6, 6, 1}, int64[1,1,1,2,1] chosen = {2, -1},"
    "float[5] scales = {1, 1, 2, 0.5, 1}, int64[5] sizes = {3, 2, 4, 9, 1},"
    "int64[10] pads = {0, 0, 1, 2, 0, 0, 0, 2, 0, 0}"
)

# the node, and the shape of its result when it reads [N,2,6,6,1]
MOVES = {
    "Transpose": ("Transpose<perm=[0,4,2,3,1]>(v)", "N,1,6,6,2"),
    "Reshape": ("Reshape(v, flat)", "N,72"),
    "Unsqueeze": ("Unsqueeze(v, first)", "1,N,2,6,6,1"),
    "Squeeze": ("Squeeze(v, last)", "N,2,6,6"),
    "Flatten": ("Flatten<axis=1>(v)", "N,72"),
    "Slice": ("Slice(v, first, five, two)", "N,2,5,6,1"),
    "Gather": ("Gather<axis=2>(v, five)", "N,2,1,6,1"),
    "Expand": ("Expand(v, wide)", "3,2,6,6,1"),
    "Concat": ("Concat<axis=1>(v, v)", "N,4,6,6,1"),
    "Tile": ("Tile(v, wide)", "M,2,36,36,1"),
    "GatherElements": ("GatherElements<axis=3>(v, chosen)", "1,1,1,2,1"),
}
POOLS = {
    "MaxPool": (
        "MaxPool<kernel_shape=[3,3,1], strides=[2,2,1], pads=[1,1,0,1,1,0]>(v)",
        "N,2,3,3,1",
    ),
    "ReduceMax": ("ReduceMax<keepdims=0>(v, two)", "N,2,6,1"),
    "ReduceMin": ("ReduceMin<keepdims=1>(v, two)", "N,2,1,6,1"),
    "Resize by scales": ('Resize<mode="nearest">(v, "", scales)', "N,2,12,3,1"),
    "Resize by sizes": ('Resize(v, "", "", sizes)', "3,2,4,9,1"),
    "Pad by what mirrors": ('Pad<mode="reflect">(v, pads)', "N,2,9,8,1"),
    "Pad by the edge": ('Pad<mode="edge">(v, pads)', "N,2,9,8,1"),
    "dilated MaxPool": ("MaxPool<kernel_shape=[2,2,1], dilations=[2,2,1]>(v)", "N,2,4,4,1"),
}
TYPES = {"int8": 13, "uint8": 13, "int16": 21, "uint16": 21}
BEGINS = {"ReduceMax": 18, "ReduceMin": 18}
"""Before, axes are no operand."""
CASES = [
    pytest.param(dtype, max(opset, BEGINS.get(name, 13)), move, shape, id=f"{name} {dtype}")
    for dtype, opset in TYPES.items()
    for name, (move, shape) in (MOVES | (POOLS if dtype.endswith("t8") else {})).items()
]


@pytest.mark.parametrize(("dtype", "opset", "move", "shape"), CASES)
def test_moves_integers(dtype: str, opset: int, move: str, shape: str) -> None:
    size = {"Expand": "1", "Resize": "3" if "sizes" in move else "N"}.get(move[:6], "N")
    head = f"g ({dtype}[{size},2,6,6,1] x) => ({dtype}[{shape}] y)"
    constants = f"<{NUMBERS}, float s = {{0.1}}, {dtype} z = {{3}}>"
    of_integers = re.sub(r"\bv\b", "x", move)
    check_rewrite(
        the_pass,
        before=f"{head} {constants} {{ v = DequantizeLinear(x, s, z)  m = {move}"
        "  y = QuantizeLinear(m, s, z) }",
        after=f"{head} {constants} {{ y = {of_integers} }}",
        opset=opset,
    )


def test_a_tree_of_moves() -> None:
    check_rewrite(
        the_pass,
        before="g (uint8[N,4] a, uint8[N,4] b) => (uint8[8,N] y) <float s = {0.1}, uint8 z = {3},"
        "float t = {0.1}, int64[1] end = {2}> {"
        "c = DequantizeLinear(a, s, z)  d = DequantizeLinear(b, t, z)  e = Unsqueeze(d, end)"
        "f = Squeeze(e, end)  h = Concat<axis=1>(c, f)  i = Transpose(h)"
        "y = QuantizeLinear(i, s, z) }",
        after="g (uint8[N,4] a, uint8[N,4] b) => (uint8[8,N] y) <int64[1] end = {2}> {"
        "e = Unsqueeze(b, end) f = Squeeze(e, end) h = Concat<axis=1>(a, f) y = Transpose(h) }",
    )


AXES = {
    "Transpose": ("<axis=1>", "Transpose<perm=[1,0,2]>(d)", "<axis=0>", "2,N,6"),
    "Reshape before the axis": ("<axis=2>", "Reshape(d, t)", "<axis=1>", "6,6"),
    "Unsqueeze": ("<axis=-2>", "Unsqueeze(d, t)", "<axis=2>", "N,1,2,6"),
    "Flatten behind an axis": ("<axis=0>", "Flatten(d)", "<axis=0>", "3,12"),
}
HEAD = "g (int8[{0},2,6] x) => (int8[{1}] y)"


@pytest.mark.parametrize(("axis", "move", "moved", "shape"), AXES.values(), ids=AXES)
def test_scales_of_an_axis(axis: str, move: str, moved: str, shape: str) -> None:
    size = {"<axis=1>": 2, "<axis=-2>": 2, "<axis=2>": 6, "<axis=0>": 3}[axis]
    rows = "3" if axis == "<axis=0>" or "Reshape" in move else "N"
    numbers = ",".join(str(item) for item in range(1, size + 1))
    shapes = "int64[1] t = {1}" if "Unsqueeze" in move else "int64[2] t = {-1, 6}"
    constants = f"float[{size}] s = {{{numbers}}}, int8[{size}] z = {{{numbers}}}, {shapes}"
    head = HEAD.format(rows, shape)
    check_rewrite(
        the_pass,
        before=f"{head} <{constants}> {{ d = DequantizeLinear{axis}(x, s, z)  m = {move}"
        f"  y = QuantizeLinear{moved}(m, s, z) }}",
        after=f"{head} <{constants}> {{ y = {move.replace('(d', '(x')} }}",
    )


def test_the_dequantized_value_may_have_other_readers() -> None:
    check_rewrite(
        the_pass,
        before="g (int8[N,2] x) => (int8[2,N] y, float[N,2] d) <float s = {0.1}, int8 z = {3}>"
        "{ d = DequantizeLinear(x, s, z)  m = Transpose(d)  y = QuantizeLinear(m, s, z) }",
        after="g (int8[N,2] x) => (int8[2,N] y, float[N,2] d) <float s = {0.1}, int8 z = {3}>"
        "{ y = Transpose(x)  d = DequantizeLinear(x, s, z) }",
    )


def test_in_a_branch() -> None:
    graph = """g (bool c, uint8[4,2] x) => (uint8[M,K] y) <float s = {{0.1}}> {{
        y = If(c) <then_branch = g1 () => (uint8[2,4] t) {{ {} }},
                   else_branch = g2 () => (uint8[4,2] e) {{ e = BitwiseNot(x) }}>
    }}"""
    floats = "d = DequantizeLinear(x, s)  m = Transpose(d)  t = QuantizeLinear(m, s)"
    check_rewrite(the_pass, before=graph.format(floats), after=graph.format("t = Transpose(x)"))


BODY = "{{ d = DequantizeLinear{}(x, s, z)  m = {}  y = QuantizeLinear{}(m, {}, {}) }}"
SAME = "float s = {0.1}, int8 z = {3}"
KEPT = {
    "another scale": (
        "int8[4,2]",
        "int8[8] y",
        "float s = {0.1}, float r = {0.4}, int8 z = {0}, int64[1] t = {8}",
        BODY.format("", "Reshape(d, t)", "", "r", "z"),
    ),
    "another zero point": (
        "int8[4,2]",
        "int8[2,4] y",
        f"{SAME}, int8 w = {{4}}",
        BODY.format("", "Transpose(d)", "", "s", "w"),
    ),
    "another type": (
        "int8[4,2]",
        "uint8[2,4] y",
        f"{SAME}, uint8 w = {{3}}",
        BODY.format("", "Transpose(d)", "", "s", "w"),
    ),
    "the axis of the scales is not moved": (
        "int8[2,2]",
        "int8[2,2] y",
        "float[2] s = {1, 2}, int8[2] z = {3, 4}",
        BODY.format("<axis=0>", "Transpose(d)", "<axis=0>", "s", "z"),
    ),
    "a reshape mixes the axis": (
        "int8[2,3]",
        "int8[3,2] y",
        "float[2] s = {1, 2}, int8[2] z = {3, 4}, int64[2] t = {3, 2}",
        BODY.format("<axis=0>", "Reshape(d, t)", "<axis=1>", "s", "z"),
    ),
    "a slice of the axis": (
        "int8[2,2]",
        "int8[2,2] y",
        "float[2] s = {1, 2}, int8[2] z = {3, 4}, int64[1] a = {-1}, int64[1] e = {-9},"
        "int64[1] i = {0}",
        BODY.format("<axis=0>", "Slice(d, a, e, i, a)", "<axis=0>", "s", "z"),
    ),
    "blocks": (
        "int8[4,2]",
        "int8[2,4] y",
        "float[2,2] s = {1, 2, 3, 4}, int8[2,2] z = {3, 4, 5, 6}",
        BODY.format("<axis=0, block_size=2>", "Transpose(d)", "<axis=1, block_size=2>", "s", "z"),
    ),
    "moved floats that something else reads": (
        "int8[4,2]",
        "int8[2,4] y, float[2,4] n",
        SAME,
        BODY.format("", "Transpose(d)", "", "s", "z").replace("}", "n = Neg(m) }"),
    ),
    "moved floats that are an output": (
        "int8[4,2]",
        "int8[2,4] y, float[2,4] m",
        SAME,
        BODY.format("", "Transpose(d)", "", "s", "z"),
    ),
    "the indices of a MaxPool": (
        "int8[1,1,4]",
        "int8[1,1,2] y, int64[1,1,2] i",
        SAME,
        "{ d = DequantizeLinear(x, s, z)  m, i = MaxPool<kernel_shape=[3]>(d)"
        "  y = QuantizeLinear(m, s, z) }",
    ),
    "an activation": ("int8[4]", "int8[4] y", SAME, BODY.format("", "Relu(d)", "", "s", "z")),
    "one branch of a Concat is no integer": (
        "int8[4]",
        "int8[8] y",
        SAME,
        BODY.format("", "Concat<axis=0>(d, f)", "", "s", "z").replace("{", "{ f = Cast<to=1>(x)"),
    ),
    "one branch of a Concat has another scale": (
        "int8[4]",
        "int8[8] y",
        f"{SAME}, float r = {{0.2}}",
        BODY.format("", "Concat<axis=0>(d, f)", "", "s", "z").replace(
            "{", "{ f = DequantizeLinear(x, r, z)"
        ),
    ),
    "a MaxPool of 16 bits": (
        "int16[1,1,4]",
        "int16[1,1,2] y",
        "float s = {0.1}, int16 z = {3}",
        BODY.format("", "MaxPool<kernel_shape=[3]>(d)", "", "s", "z"),
    ),
    "integers of 4 bits": (
        "int4[4,2]",
        "int4[8] y",
        "float s = {0.1}, int4 z = {3}, int64[1] t = {8}",
        BODY.format("", "Reshape(d, t)", "", "s", "z"),
    ),
    "a scale of 0": (
        "int8[4,2]",
        "int8[2,4] y",
        "float s = {0}, int8 z = {3}",
        BODY.format("", "Transpose(d)", "", "s", "z"),
    ),
    "a negative scale turns the largest into the smallest": (
        "int8[1,1,4]",
        "int8[1,1,2] y",
        "float s = {-0.1}, int8 z = {3}",
        BODY.format("", "MaxPool<kernel_shape=[3]>(d)", "", "s", "z"),
    ),
}


@pytest.mark.parametrize(("x", "outputs", "constants", "body"), KEPT.values(), ids=KEPT)
def test_keeps(x: str, outputs: str, constants: str, body: str) -> None:
    check_unchanged(the_pass, f"g ({x} x) => ({outputs}) <{constants}> {body}", opset=21)


def test_the_near_miss_names_the_reason() -> None:
    x, outputs, constants, body = KEPT["another scale"]
    stats = run_pass(the_pass, text.parse(f"g ({x} x) => ({outputs}) <{constants}> {body}"))
    assert [reason for _, reason in stats.missed] == ["the scales are not proved equal"]


def test_keeps_below_opset_13() -> None:
    check_unchanged(
        the_pass,
        f"g (int8[4,2] x) => (int8[2,4] y) <{SAME}>"
        + BODY.format("", "Transpose(d)", "", "s", "z").replace("{{", "{").replace("}}", "}"),
        opset=11,
    )


PAIRS = (
    "g (float[2,3] x) => (float[6] y) <float s = {{0.5}}, {0} z = {{1}}, int64[1] flat = {{-1}}>"
    "{{ q = QuantizeLinear(x, s, z)  a = DequantizeLinear(q, s, z)  r = Reshape(a, flat)"
    "  p = QuantizeLinear(r, s, z)  y = DequantizeLinear(p, s, z) }}"
)


def test_pairs_of_int8_stay_for_runtimes_that_turn_them_to_uint8() -> None:
    check_unchanged(the_pass, PAIRS.format("int8"), keep_groups=True)
    assert run_pass(the_pass, text.parse(PAIRS.format("int8"), 21)).rewrites == 1


def test_pairs_of_uint8_are_changed() -> None:
    assert run_pass(the_pass, text.parse(PAIRS.format("uint8"), 21), keep_groups=True).rewrites == 1


@pytest.mark.parametrize(
    ("head", "before", "result", "after"),
    [
        ("int8[2,3] q", "", "float[6] y", "y = DequantizeLinear(p, s, z)"),
        ("float[2,3] x", "q = QuantizeLinear(x, s, z)", "int8[6] p", ""),
    ],
    ids=["only behind the move", "only in front of it"],
)
def test_one_pair_of_int8_is_enough(head: str, before: str, result: str, after: str) -> None:
    graph = (
        f"g ({head}) => ({result}) <float s = {{0.5}}, int8 z = {{1}}, int64[1] flat = {{-1}}>"
        f"{{ {before} a = DequantizeLinear(q, s, z) r = Reshape(a, flat)"
        f" p = QuantizeLinear(r, s, z) {after} }}"
    )
    check_unchanged(the_pass, graph, keep_groups=True)
    assert run_pass(the_pass, text.parse(graph, 21)).rewrites == 1


def test_int8_without_pairs_is_changed() -> None:
    graph = (
        "g (int8[2,3] q) => (int8[6] y) <float s = {0.5}, int8 z = {1}, int64[1] flat = {-1}>"
        "{ a = DequantizeLinear(q, s, z)  r = Reshape(a, flat)  y = QuantizeLinear(r, s, z) }"
    )
    assert run_pass(the_pass, text.parse(graph, 21), keep_groups=True).rewrites == 1
