"""Nested Concats become one, without empty pieces."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.simplify.merge_consecutive_concats import MOST, merge_consecutive_concats

MERGED = {
    "one in another": ("h = Concat<axis=1>(a, b) y = Concat<axis=1>(h, c)", "(a, b, c)"),
    "one in another, from the end": (
        "h = Concat<axis=-1>(a, b) y = Concat<axis=1>(c, h)",
        "(c, a, b)",
    ),
    "three deep": (
        "h = Concat<axis=1>(a, b) k = Concat<axis=1>(h, c) y = Concat<axis=1>(a, k)",
        "(a, a, b, c)",
    ),
    "a piece without rows": ("y = Concat<axis=1>(a, e, b)", "(a, b)"),
    "a piece without rows inside": (
        "h = Concat<axis=1>(e, b) y = Concat<axis=1>(h, c)",
        "(b, c)",
    ),
}


def graph(body: str, more: str = "") -> str:
    ins = "float[N,2] a, float[N,3] b, float[N,1] c, float[N,0] e"
    return f"g ({ins}) => (float[N,K] y{more}) {{ {body} }}"


@pytest.mark.parametrize(("before", "pieces"), MERGED.values(), ids=MERGED.keys())
@pytest.mark.parametrize("opset", [13, 23, 26])
def test_merges(before: str, pieces: str, opset: int) -> None:
    after = graph(f"y = Concat<axis=1>{pieces}")
    check_rewrite(merge_consecutive_concats, graph(before), after, opset=opset)


KEPT = {
    "another axis": graph("h = Concat<axis=0>(a, a) k = Concat<axis=1>(h, h) y = Neg(k)"),
    "read elsewhere": graph(
        "h = Concat<axis=1>(a, b) z = Neg(h) y = Concat<axis=1>(h, c)", ", float[N,5] z"
    ),
    "an output": graph("h = Concat<axis=1>(a, b) y = Concat<axis=1>(h, c)", ", float[N,5] h"),
    "twice in one": graph("h = Concat<axis=1>(a, b) y = Concat<axis=1>(h, h)"),
    "a size that may be 0": graph("y = Concat<axis=0>(a, a)"),
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT.keys())
def test_keeps(source: str) -> None:
    check_unchanged(merge_consecutive_concats, source)


def test_only_pieces_without_rows() -> None:
    check_rewrite(
        merge_consecutive_concats,
        graph("y = Concat<axis=1>(e, e)").replace("[N,K]", "[N,0]"),
        graph("y = Concat<axis=1>(e)").replace("[N,K]", "[N,0]"),
    )


@pytest.mark.parametrize("link", ["v{i}, c", "c, v{i}"], ids=["grows behind", "grows in front"])
def test_a_long_chain_is_merged_in_parts(link: str) -> None:
    count = 2000
    body = "".join(f"v{i + 1} = Concat<axis=1>({link.format(i=i)}) " for i in range(count))
    model = text.parse(f"g (float[N,1] v0, float[N,1] c) => (float[N,K] v{count}) {{ {body} }}")
    stats = run_pass(merge_consecutive_concats, model)
    assert len(model.graph) < 2 * count / MOST + 2
    assert all(len(node.inputs) <= MOST for node in model.graph)
    assert stats.rewrites == len(model.graph), "pieces were copied more than once"


def test_parts_of_a_tree_are_merged_by_the_last_of_them() -> None:
    before = "h = Concat<axis=1>(a, b) k = Concat<axis=1>(b, c) y = Concat<axis=1>(h, e, k)"
    model = text.parse(graph(before))
    stats = run_pass(merge_consecutive_concats, model)
    [joined] = model.graph
    assert [value.name for value in joined.inputs if value is not None] == ["a", "b", "b", "c"]
    assert stats.rewrites == 1


@pytest.mark.parametrize(("pieces", "nodes"), [(MOST - 1, 1), (MOST, 2)])
def test_a_concat_without_room_leaves_the_one_before_to_itself(pieces: int, nodes: int) -> None:
    more = ", ".join(["c"] * (pieces - 1))
    body = f"h = Concat<axis=1>(a, b) y = Concat<axis=1>(h, {more})"
    model = text.parse(graph(body))
    run_pass(merge_consecutive_concats, model)
    assert len(model.graph) == nodes
    assert all(len(node.inputs) <= MOST for node in model.graph)
