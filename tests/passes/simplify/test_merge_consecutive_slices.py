"""Two Slices become one, and a Slice of one piece of a Concat reads that piece."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rewrites import check_rewrite, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.simplify.merge_consecutive_slices import merge_consecutive_slices
from smelt.runtime.runner import open_runner

FIRST, LAST = -(2**63), 2**63 - 1
Cut = tuple[int, int, int, int]


def cut(name: str, of: str, *cuts: Cut) -> str:
    """Return the text of a Slice by ``(axis, start, end, step)``."""
    axes, starts, ends, steps = zip(*cuts, strict=True)
    lists = {"s": starts, "e": ends, "a": axes}
    if set(steps) != {1}:
        lists["t"] = steps
    lines = [
        f"{name}{k} = Constant<value_ints=[{','.join(map(str, v))}]>()" for k, v in lists.items()
    ]
    operands = ", ".join(f"{name}{k}" for k in lists)
    return "\n".join([*lines, f"{name} = Slice({of}, {operands})\n"])


def graph(body: str, x: str = "float[N,5]", y: str = "float[N,K]") -> str:
    return f"g ({x} x) => ({y} y) {{ {body} }}"


MERGED = {
    "forward, then backward": (
        cut("h", "x", (1, 1, 3, 1)) + cut("y", "h", (1, -1, FIRST, -1)),
        cut("y", "x", (1, 2, 0, -1)),
        "float[N,2]",
    ),
    "to the first row": (
        cut("h", "x", (1, 0, 3, 1)) + cut("y", "h", (1, -1, FIRST, -1)),
        cut("y", "x", (1, 2, FIRST, -1)),
        "float[N,3]",
    ),
    "steps": (
        cut("h", "x", (1, 0, 5, 2)) + cut("y", "h", (1, 1, LAST, 1)),
        cut("y", "x", (1, 2, 5, 2)),
        "float[N,2]",
    ),
    "backward twice": (
        cut("h", "x", (1, -1, FIRST, -1)) + cut("y", "h", (-1, 3, 1, -1)),
        cut("y", "x", (1, 1, 3, 1)),
        "float[N,2]",
    ),
    "down to one row": (
        cut("h", "x", (1, 1, 4, 2)) + cut("y", "h", (1, 1, 2, 3)),
        cut("y", "x", (1, 3, 4, 1)),
        "float[N,1]",
    ),
    "another axis, of unknown size": (
        cut("h", "x", (1, 1, 3, 1)) + cut("y", "h", (0, -1, FIRST, -1)),
        cut("y", "x", (0, -1, FIRST, -1), (1, 1, 3, 1)),
        "float[N,2]",
    ),
    "an unknown size, from the front": (
        cut("h", "x", (0, 2, LAST, 1)) + cut("y", "h", (0, 1, 3, 1)),
        cut("y", "x", (0, 3, 5, 1)),
        "float[K,5]",
    ),
    "down to nothing": (
        cut("h", "x", (1, 1, 3, 1)) + cut("y", "h", (1, 4, 9, 1)),
        cut("y", "x", (1, 0, 0, 1)),
        "float[N,0]",
    ),
}


@pytest.mark.parametrize(("before", "after", "y"), MERGED.values(), ids=MERGED.keys())
def test_merges(before: str, after: str, y: str) -> None:
    check_rewrite(merge_consecutive_slices, graph(before, y=y), graph(after, y=y))


@pytest.mark.parametrize("opset", [13, 23, 26])
def test_any_opset(opset: int) -> None:
    before, after, y = MERGED["forward, then backward"]
    check_rewrite(merge_consecutive_slices, graph(before, y=y), graph(after, y=y), opset=opset)


def test_the_inner_one_stays_for_others() -> None:
    inner = cut("h", "x", (1, 1, 4, 1))
    check_rewrite(
        merge_consecutive_slices,
        f"g (float[N,5] x) => (float[N,1] y, float[N,3] h) {{ {inner} {cut('y', 'h', (1, 1, 2, 1))} }}",
        f"g (float[N,5] x) => (float[N,1] y, float[N,3] h) {{ {inner} {cut('y', 'x', (1, 2, 3, 1))} }}",
    )


PIECES = "a = Neg(x) b = Exp(x) j = Concat<axis=1>(a, x, b)"
OF_A_PIECE = {
    "the first": ((1, 1, 3, 1), "a", (1, 1, 3, 1)),
    "the middle one, whole": ((1, 5, 10, 1), "x", (1, 0, 5, 1)),
    "the last, backward": ((-1, -1, 11, -2), "b", (1, 4, 1, -2)),
}


@pytest.mark.parametrize(("taken", "piece", "then"), OF_A_PIECE.values(), ids=OF_A_PIECE.keys())
def test_of_one_piece(taken: Cut, piece: str, then: Cut) -> None:
    y = f"float[N,{len(range(*then[1:]))}]"
    made = {"a": "a = Neg(x)", "b": "b = Exp(x)", "x": ""}[piece]
    check_rewrite(
        merge_consecutive_slices,
        graph(f"{PIECES} {cut('y', 'j', taken)}", y=y),
        graph(f"{made} {cut('y', piece, then)}", y=y),
    )


WHOLE = {
    "two parts": ("float[N,5]", [(1, 0, 2, 1), (1, 2, 5, 1)]),
    "ends from behind": ("float[N,5]", [(1, 0, -2, 1), (1, -2, LAST, 1)]),
    "three parts": ("float[N,5]", [(1, FIRST, 1, 1), (1, 1, 2, 1), (1, 2, 99, 1)]),
    "an open axis": ("float[N,5]", [(0, 0, 7, 1), (0, 7, 9, 1), (0, 9, LAST, 1)]),
    "an open axis to 2**31 - 1": ("float[N,5]", [(0, 0, 7, 1), (0, 7, 2**31 - 1, 1)]),
}


def joined(parts: list[Cut], last: str = "") -> str:
    """Return the text of the Concat of Slices of ``x``, and of ``last``."""
    texts = [cut(f"p{number}", "x", part) for number, part in enumerate(parts)]
    names = [f"p{number}" for number in range(len(parts))]
    names += [last] if last else []
    return "".join(texts) + f"y = Concat<axis={parts[0][0]}>({', '.join(names)})"


@pytest.mark.parametrize(("shape", "parts"), WHOLE.values(), ids=WHOLE)
def test_all_rows_in_their_order_are_the_tensor(shape: str, parts: list[Cut]) -> None:
    source, result = "h = Exp(x) " + joined(parts).replace("Slice(x,", "Slice(h,"), "y = Exp(x)"
    head = f"g ({shape} x) => ({shape} y) {{{{ {{}} }}}}"
    check_rewrite(merge_consecutive_slices, head.format(source), head.format(result))


NOT_WHOLE = {
    "a gap": ("float[N,5]", joined([(1, 0, 2, 1), (1, 3, 5, 1)])),
    "rows twice": ("float[N,5]", joined([(1, 0, 3, 1), (1, 2, 5, 1)])),
    "another order": ("float[N,5]", joined([(1, 2, 5, 1), (1, 0, 2, 1)])),
    "not the first row": ("float[N,5]", joined([(1, 1, 2, 1), (1, 2, 5, 1)])),
    "not the last row": ("float[N,5]", joined([(1, 0, 2, 1), (1, 2, 4, 1)])),
    "backward": ("float[N,5]", joined([(1, 4, 1, -1), (1, 1, FIRST, -1)])),
    "every other row": ("float[N,5]", joined([(1, 0, 4, 2), (1, 4, 5, 1)])),
    "an open axis to a number": ("float[N,5]", joined([(0, 0, 2, 1), (0, 2, 9, 1)])),
    "an open axis from behind": ("float[N,5]", joined([(0, 0, -1, 1), (0, -1, LAST, 1)])),
    "another axis": (
        "float[4,4]",
        joined([(1, 0, 2, 1), (1, 2, 4, 1)]).replace("axis=1", "axis=0"),
    ),
    "a second axis is cut": (
        "float[N,5]",
        cut("p", "x", (0, 0, 1, 1), (1, 0, 2, 1))
        + cut("q", "x", (0, 0, 1, 1), (1, 2, 5, 1))
        + "y = Concat<axis=1>(p, q)",
    ),
    "another tensor": (
        "float[N,5]",
        "h = Neg(x) " + cut("q", "h", (1, 2, 5, 1)) + joined([(1, 0, 2, 1)], "q"),
    ),
    "something more": ("float[N,5]", joined([(1, 0, 2, 1), (1, 2, 5, 1)], "x")),
}


@pytest.mark.parametrize(("shape", "body"), NOT_WHOLE.values(), ids=NOT_WHOLE)
def test_other_joined_rows_stay(shape: str, body: str) -> None:
    check_unchanged(merge_consecutive_slices, graph(body, shape, "float[K,L]"))


KEPT = {
    "an unknown size, from the end": cut("h", "x", (0, -4, LAST, 1)) + cut("y", "h", (0, 1, 2, 1)),
    "an unknown size, by steps": cut("h", "x", (0, 0, LAST, 2)) + cut("y", "h", (0, 1, 2, 1)),
    "rows of two pieces": f"{PIECES} {cut('y', 'j', (1, 4, 6, 1))}",
    "no rows of any piece": f"{PIECES} {cut('y', 'j', (1, 4, 4, 1))}",
    "another axis than that of the pieces": f"{PIECES} {cut('y', 'j', (0, 0, 1, 1))}",
    "pieces of unknown size": "a = Neg(x) j = Concat<axis=0>(a, x)" + cut("y", "j", (0, 0, 1, 1)),
    "an end that is computed": cut("h", "x", (1, 1, 3, 1))
    + "s = Shape<start=0, end=1>(x) z = Constant<value_ints=[0]>() y = Slice(h, z, s, z)",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_keeps(body: str) -> None:
    check_unchanged(merge_consecutive_slices, graph(body, y="float[M,K]"))


EDGES = st.one_of(st.integers(-8, 8), st.sampled_from([FIRST, LAST]))
CUTS = st.tuples(st.just(0), EDGES, EDGES, st.integers(-3, 3).filter(bool))


@settings(max_examples=80, deadline=None)
@given(size=st.integers(0, 6), first=CUTS, second=CUTS, known=st.booleans())
def test_the_same_rows(size: int, first: Cut, second: Cut, known: bool) -> None:
    assume(all(step > 0 or end != LAST for _, _, end, step in (first, second)))  # runtimes differ
    x = f"int64[{size if known else 'N'}]"
    source = graph(cut("h", "x", first) + cut("y", "h", second), x, "int64[K]")
    before, after = text.parse(source), text.parse(source)
    run_pass(merge_consecutive_slices, after)
    assert not known or len([n for n in after.graph if n.op_type == "Slice"]) == 1
    (a,), (b,) = (open_runner(model)(np.arange(size)) for model in (before, after))
    assert a.tolist() == b.tolist()
