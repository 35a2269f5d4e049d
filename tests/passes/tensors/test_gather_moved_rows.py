"""A roll of rows and the moves around it become one Gather."""

from __future__ import annotations

import numpy as np
import pytest
from literals import literal
from rewrites import check_rewrite, check_same_numbers, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.base import PassContext
from smelt.passes.tensors.gather_moved_rows import MOST_ROWS, gather_moved_rows

NUMBERS = (
    "int64[1] o = {0}, int64[1] i = {1}, int64[1] end = {9223372036854775807}, "
    "int64[1] rows = {1}, int64[1] columns = {2}"
)
ROLL = "p = Slice(x, o, i, rows) q = Slice(x, i, end, rows) r = Concat<axis=1>(q, p) "
ROLL_COLUMNS = "s = Slice(r, o, i, columns) t = Slice(r, i, end, columns) c = Concat<axis=2>(t, s) "


def graph(
    body: str, x: str = "float[N,4,6,32]", y: str = "float[N,4,6,32]", constants: str = NUMBERS
) -> str:
    return f"g ({x} x) => ({y} y) <{constants}> {{ {body} }}"


def order(places: np.ndarray) -> str:
    return f"int32[{places.size}] places = {literal('int32', *places.reshape(-1).tolist())}"


def test_a_roll_is_a_gather() -> None:
    check_rewrite(
        gather_moved_rows,
        graph(ROLL + "y = Neg(r)"),
        graph(
            "r = Gather<axis=1>(x, places) y = Neg(r)",
            constants=order(np.roll(np.arange(4), -1)),
        ),
    )


def test_a_roll_of_two_axes_is_one_gather_of_their_product() -> None:
    rolled = np.roll(np.arange(24).reshape(4, 6), (-1, -1), (0, 1))
    check_rewrite(
        gather_moved_rows,
        graph(ROLL + ROLL_COLUMNS + "y = Neg(c)"),
        graph(
            "k = Reshape(x, flat) c = Gather<axis=1>(k, places) m = Reshape(c, apart) y = Neg(m)",
            constants="int64[3] flat = {0,24,32}, int64[4] apart = {0,4,6,32}, " + order(rolled),
        ),
    )


WINDOWS = "int64[4] map = {-1,4,6,32}, int64[6] six = {-1,2,2,3,2,32}, int64[3] win = {-1,4,32}"


def test_shifted_windows_are_one_gather() -> None:
    """Swin rolls both axes before attention and cuts windows of 2 x 2."""
    windows = np.roll(np.arange(24).reshape(4, 6), (-1, -1), (0, 1)).reshape(2, 2, 3, 2)
    check_rewrite(
        gather_moved_rows,
        graph(
            "x = Reshape(w, map) "
            + ROLL
            + ROLL_COLUMNS
            + "u = Reshape(c, six) v = Transpose<perm=[0,1,3,2,4,5]>(u) z = Reshape(v, win) "
            "y = Neg(z)",
            y="float[M,4,32]",
            constants=f"{NUMBERS}, {WINDOWS}",
        ).replace("float[N,4,6,32] x", "float[N,24,32] w"),
        graph(
            "g = Gather<axis=1>(w, places) m = Reshape(g, apart) z = Reshape(m, win) y = Neg(z)",
            y="float[M,4,32]",
            constants="int64[6] apart = {0,2,3,2,2,32}, int64[3] win = {-1,4,32}, "
            + order(windows.transpose(0, 2, 1, 3)),
        ).replace("float[N,4,6,32] x", "float[N,24,32] w"),
    )


def test_rows_that_are_cut_away_are_not_read() -> None:
    check_rewrite(
        gather_moved_rows,
        graph(
            ROLL + "s = Slice(r, o, i, columns) y = Neg(s)",
            y="float[N,4,1,32]",
        ),
        graph(
            "k = Reshape(x, flat) c = Gather<axis=1>(k, places) m = Reshape(c, apart) y = Neg(m)",
            y="float[N,4,1,32]",
            constants="int64[3] flat = {0,24,32}, int64[4] apart = {0,4,1,32}, "
            + order(np.roll(np.arange(24).reshape(4, 6), -1, 0)[:, :1]),
        ),
    )


def test_a_roll_and_back_is_nothing() -> None:
    back = "s = Slice(r, o, three, rows) t = Slice(r, three, end, rows) b = Concat<axis=1>(t, s) "
    check_rewrite(
        gather_moved_rows,
        graph(ROLL + back + "y = Neg(b)", constants=NUMBERS + ", int64[1] three = {3}"),
        graph("y = Neg(x)", constants=""),
    )


def test_other_orders_of_parts_and_parts_of_a_split() -> None:
    check_rewrite(
        gather_moved_rows,
        graph(
            "p, q, r = Split<axis=1>(x, sizes) c = Concat<axis=1>(r, p, q) y = Neg(c)",
            constants="int64[3] sizes = {1,2,1}",
        ),
        graph("c = Gather<axis=1>(x, places) y = Neg(c)", constants=order(np.array([3, 0, 1, 2]))),
    )


@pytest.mark.parametrize("dtype", ["float16", "double", "int8", "bool"])
def test_any_type_whose_rows_have_128_bytes(dtype: str) -> None:
    x = f"{dtype}[2,4,128]"
    body = ROLL + "y = Identity(r)"
    check_rewrite(
        gather_moved_rows,
        graph(body, x, x),
        graph("r = Gather<axis=1>(x, places) y = Identity(r)", x, x, order(np.array([1, 2, 3, 0]))),
    )


def test_gathers_by_negative_numbers_before_a_roll() -> None:
    check_rewrite(
        gather_moved_rows,
        graph(
            "x = Gather<axis=1>(w, back) " + ROLL + "y = Neg(r)",
            constants=NUMBERS + ", int64[4] back = {-1,-2,-3,-4}",
        ).replace("6,32] x", "6,32] w"),
        graph(
            "c = Gather<axis=1>(w, places) y = Neg(c)", constants=order(np.array([2, 1, 0, 3]))
        ).replace("6,32] x", "6,32] w"),
    )


INNER = (
    "g (bool c, float[2,4,6,32] x) => (float[2,4,6,32] y) <" + NUMBERS + "> "
    "{ p = Slice(x, o, i, rows) q = Slice(x, i, end, rows) y = If(c) <then_branch = a () => "
    "(float[2,4,6,32] u) { u = Concat<axis=1>(q, p) }, else_branch = b () => "
    "(float[2,4,6,32] v) { v = Neg(x) }> }"
)
KEPT = {
    "rows of 64 bytes in one move": graph(ROLL + "y = Neg(r)", "float[N,4,6,16]", "float[N,4,6,16]")
    .replace("axis=1", "axis=2")
    .replace(" rows)", " columns)"),
    "rows of 8 bytes in two moves": graph(
        ROLL + ROLL_COLUMNS + "y = Neg(c)", "float[N,4,6,2]", "float[N,4,6,2]"
    ),
    "strings": graph(ROLL + "y = Identity(r)", "string[2,4,128]", "string[2,4,128]"),
    "an open size along the axis": graph(ROLL + "y = Neg(r)", "float[N,H,6,32]", "float[N,H,6,32]"),
    "an open size behind the axis": graph(ROLL + "y = Neg(r)", "float[N,4,W,C]", "float[N,4,W,C]"),
    "parts of two values": (
        "g (float[N,4,6,32] x, float[N,4,6,32] z) => (float[N,4,6,32] y) <" + NUMBERS + "> { "
        "p = Slice(x, o, i, rows) q = Slice(z, i, end, rows) r = Concat<axis=1>(q, p) "
        "y = Neg(r) }"
    ),
    "parts along another axis": graph(
        ROLL.replace("Concat<axis=1>", "Concat<axis=0>")
        .replace("o, i,", "i, two,")
        .replace("q = Slice(x, i, end,", "q = Slice(x, o, i,")
        + "y = Neg(r)",
        "float[1,4,6,32]",
        "float[2,1,6,32]",
        NUMBERS + ", int64[1] two = {2}",
    ),
    "a part that is read": graph(ROLL + "y = Neg(r) z = Neg(p)").replace(
        "y) <", "y, float[N,1,6,32] z) <"
    ),
    "a part that is an output": graph(ROLL + "y = Neg(r)").replace(
        "y) <", "y, float[N,1,6,32] p) <"
    ),
    "starts that are computed": (
        "g (float[N,4,6,32] x, int64[1] i) => (float[N,M,6,32] y) <int64[1] o = {0}, "
        "int64[1] end = {9}, int64[1] rows = {1}> { " + ROLL + "y = Neg(r) }"
    ),
    "no rows": graph(ROLL + "y = Neg(r)", "float[N,0,6,32]", "float[N,0,6,32]"),
    "parts of an outer graph": INNER,
}


@pytest.mark.parametrize("case", KEPT)
def test_other_slices_and_concats_stay(case: str) -> None:
    check_unchanged(gather_moved_rows, KEPT[case])


def test_a_chain_ends_where_something_else_reads() -> None:
    check_rewrite(
        gather_moved_rows,
        graph(ROLL + ROLL_COLUMNS + "n = Neg(c) y = Add(n, r)"),
        graph(
            "r = Gather<axis=1>(x, places) c = Gather<axis=2>(r, columns) n = Neg(c) y = Add(n, r)",
            constants=order(np.array([1, 2, 3, 0])) + ", int32[6] columns = {1,2,3,4,5,0}",
        ),
    )


def test_places_of_64_kib_at_most() -> None:
    """Both axes together need too many indices, so each roll is a Gather of its own."""
    shape = f"float[1,{MOST_ROWS // 8},16,32]"
    model = text.parse(graph(ROLL + ROLL_COLUMNS + "y = Neg(c)", shape, shape))
    run_pass(gather_moved_rows, model)
    assert [node.op_type for node in model.graph] == ["Gather", "Gather", "Neg"]


def test_targets_with_kernels_of_their_own_keep_slices() -> None:
    model = text.parse(graph(ROLL + "y = Neg(r)"))
    cx = PassContext.of(model)
    cx.kernels = frozenset({"Slice", "Concat", "Gather"})
    gather_moved_rows.run(cx)
    assert "Concat" in [node.op_type for node in model.graph]


def test_a_long_run_of_rolls_is_one_gather() -> None:
    """The run is longer than one chain: the first Gather becomes part of the next chain."""
    shape = "float[N,5,6,32]"
    body = ""
    for n in range(41):
        before, after = (f"x{n}" if n else "x"), f"x{n + 1}"
        body += (
            f"p{n} = Slice({before}, o, i, rows) q{n} = Slice({before}, i, end, rows) "
            f"{after} = Concat<axis=1>(q{n}, p{n}) "
        )
    source, model = (text.parse(graph(body + "y = Neg(x41)", shape, shape)) for _ in range(2))
    run_pass(gather_moved_rows, model)
    assert sum(node.op_type == "Gather" for node in model.graph) == 1
    check_same_numbers(source, model)
