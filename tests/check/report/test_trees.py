"""Groups of nodes as text, the part that is drawn, kinds of layers, spans and cut texts."""

from __future__ import annotations

from collections import Counter

import pytest

from smelt.check.report import modules
from smelt.check.report.kinds import summary_of
from smelt.check.report.layer import part_of
from smelt.check.report.modules import tree_of
from smelt.check.report.places import Places
from smelt.check.report.shown import shown
from smelt.check.report.spans import spans_of
from smelt.spans import Recorder, Span


def text(trees: list) -> str:
    """Return trees as ``name(kids)``."""
    return " ".join(
        str(tree) if isinstance(tree, int) else f"{tree['name']}({text(tree['kids'])})"
        for tree in trees
    )


def items(row: str) -> list:
    """Return ``a.b:X`` as a node of operator X in the module b of a."""
    split = [word.rpartition(":") for word in row.split()]
    return [(tuple(filter(None, m.split("."))), n, op) for n, (m, _, op) in enumerate(split)]


TREES = {
    "X a:X a:X X": "0 a(1 2) 3",
    "a:X X a:X": "a(0 2) 1",
    "a:X X": "0 1",
    "a.b:X X": "0 1",
    "a.b:X a.b:X X": "a/b(0 1) 2",
    "a.b:X a.b:X a.c:X a.c:X X": "a(b(0 1) c(2 3)) 4",
    "a.b:X a.b:X a:X X": "a(b(0 1) 2) 3",
    # more than six
    "A B C D E F": "0 1 2 3 4 5",
    "A B C D E F G": "part 1 of 4(0 1) part 2 of 4(2 3) part 3 of 4(4 5) part 4 of 4(6)",
    "A B C D A B C D A B C D": "block 1 of 3(0 1 2 3) block 2 of 3(4 5 6 7) block 3 of 3(8 9 10 11)",
    "Z A B C D A B C D A B C D Y": (
        "0 block 1 of 3(1 2 3 4) block 2 of 3(5 6 7 8) block 3 of 3(9 10 11 12) 13"
    ),
    "A B C D A B C D": "part 1 of 4(0 1) part 2 of 4(2 3) part 3 of 4(4 5) part 4 of 4(6 7)",
    "A B C A B C A B C A": (
        "part 1 of 5(0 1) part 2 of 5(2 3) part 3 of 5(4 5) part 4 of 5(6 7) part 5 of 5(8 9)"
    ),
    "A B C D A B C D A B C": (
        "part 1 of 6(0 1) part 2 of 6(2 3) part 3 of 6(4 5) part 4 of 6(6 7) part 5 of 6(8 9) "
        "part 6 of 6(10)"
    ),
    "A B C D E A B C D E A B C D E": (
        "block 1 of 3(0 1 2 3 4) block 2 of 3(5 6 7 8 9) block 3 of 3(10 11 12 13 14)"
    ),
    "U V W A B C D A B C D A B C D X Y Z": (
        "part 1 of 5(0 1) part 2 of 5(2 block 1 of 3(3 4 5 6)) "
        "part 3 of 5(block 2 of 3(7 8 9 10) block 3 of 3(11 12 13 14)) part 4 of 5(15 16) "
        "part 5 of 5(17)"
    ),
    # equal groups of modules are repeated, too
    "m1:X m1:X B C D m2:X m2:X B C D m3:X m3:X B C D": (
        "block 1 of 3(m1(0 1) 2 3 4) block 2 of 3(m2(5 6) 7 8 9) block 3 of 3(m3(10 11) 12 13 14)"
    ),
}


@pytest.mark.parametrize("row", TREES)
def test_groups_of_at_most_six(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "MOST", 6)
    monkeypatch.setattr(modules, "PIECE", 2)
    assert text(tree_of(items(row))) == TREES[row]


def test_a_longer_period_covers_a_fifth_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "MOST", 8)
    monkeypatch.setattr(modules, "PIECE", 2)
    blocks = text(tree_of(items("A B C D " * 6)))
    assert blocks.startswith("block 1 of 6(0 1 2 3) block 2 of 6(")
    blocks = text(tree_of(items("A B C D A B C E " * 3)))
    assert blocks.startswith("block 1 of 3(0 1 2 3 4 5 6 7) block 2 of 3(")


@pytest.mark.parametrize(
    ("count", "kids"),
    [(100, 100), (101, 3), (120, 3), (4000, 100), (4001, 98)],
)
def test_kids_of_many_different_nodes(count: int, kids: int) -> None:
    tree = tree_of([((), number, f"Op{number}") for number in range(count)])
    assert len(tree) == kids
    if count > 100:
        sizes = [len(group["kids"]) for group in tree]
        assert sizes[0] == max(40, -(-count // 100))
        assert sum(sizes) == count


def graph(tree: list, changed: tuple[int, ...] = (), count: int = 400) -> dict:
    nodes = [{"state": "gone"} if number in changed else {} for number in range(count)]
    return {"nodes": nodes, "tree": tree}


def group(name: str, *kids: object) -> dict:
    return {"name": name, "kids": list(kids)}


LAYERS = [group(f"l{n}", *range(4 * n, 4 * n + 4)) for n in range(3)]
PARTS = {
    "whole": ([0, 1, 2], (), ""),
    "layers": (LAYERS, (), "l0"),
    "the later of two kinds": ([LAYERS[0], group("l1", *range(4, 9)), 9], (), "l1"),
    "most frequent": ([*LAYERS[:2], group("l2", *range(8, 13))], (), "l0"),
    "three nodes are too few": ([group(f"l{n}", *range(3 * n, 3 * n + 3)) for n in range(3)], (), ""),
    "90 nodes": ([group(f"l{n}", *range(90 * n, 90 * n + 90)) for n in range(2)], (), "l0"),
    "91 nodes": ([group(f"l{n}", *range(91 * n, 91 * n + 91)) for n in range(2)], (), ""),
    "changed most": ([group("a", 0, 1, 2, 3), group("b", *range(4, 100)), group("c", *range(100, 110))], (100, 1, 101), "c"),
    "changed most of layers": ([*LAYERS, *(group(f"m{n}", *range(20 + 4 * n, 24 + 4 * n)) for n in range(2))], (20, 1, 21), "m0"),
    "at most 90 are drawn whole": ([group("a", 0, 1, 2, 3), group("b", *range(4, 90))], (0,), ""),
    "91 are not": ([group("a", 0, 1, 2, 3), group("b", *range(4, 91))], (0,), "a"),
    "nested": ([group("o", *LAYERS)], (), "o/l0"),
    "bodies are left out": ([{"node": 0, "kids": [{"body": 1, "kids": [1, 2, 3, 4]}]}, 5], (), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_the_part_that_is_drawn(name: str) -> None:
    tree, changed, path = PARTS[name]
    found = part_of(graph(tree, changed), graph(tree))
    assert "/".join(found.path) == path
    assert found.before == found.after


def test_the_larger_side_counts() -> None:
    after = [group(f"l{n}", 2 * n, 2 * n + 1) for n in range(3)]
    assert part_of(graph(LAYERS), graph(after)).counts == (4, 2)
    assert part_of(graph(after), graph(LAYERS)).counts == (2, 4)


PLACES = [
    # groups of sources, the group of the node
    ((0, 1), ("a",)),
    ((0, 2), ("a",)),
    ((0, 2, 3), ()),
    ((2, 3), ("b",)),
    ((9,), None),
    ((9, 0), ("a",)),
    ((4,), ("b", "c")),
    ((2, 4), ("b", "c")),
    ((6,), ("d",)),
    ((7,), ()),
]


@pytest.mark.parametrize(("numbers", "place"), PLACES)
def test_half_of_the_sources_tell_the_group(numbers: tuple[int, ...], place: object) -> None:
    tree = [group("a", 0, 1), group("b", 2, group("c", 4)), 3]
    tree.append(group("d", {"node": 6, "kids": [{"name": "x", "body": 1, "kids": [7]}]}))
    places = Places(tree, [()] * 8)
    assert places._of_sources(numbers) == place


LAYER_KINDS = [
    ({"MatMul": 1, "Relu": 1}, "feed-forward"),
    ({"MatMul": 1}, "projection"),
    ({"MatMul": 2, "Softmax": 1, "Relu": 1}, "attention"),
    ({"MatMul": 3, "Softmax": 1, "Relu": 1}, "attention + feed-forward"),
    ({"MatMul": 3, "Softmax": 1}, "attention"),
    ({"MatMul": 1, "Softmax": 1, "Relu": 1}, "feed-forward"),
    ({"MatMul": 1, "Softmax": 1}, "projection"),
    ({"MatMul": 2, "Exp": 1}, "projection"),
    ({"MatMul": 2, "ReduceSum": 1}, "projection"),
    ({"Attention": 1}, "attention"),
    ({"Attention": 1, "MatMul": 2, "Relu": 1}, "attention"),
    ({"Conv": 1, "MatMul": 4, "Relu": 1}, "convolution"),
    ({"Conv": 1, "MatMul": 4}, "convolution"),
    ({"LSTM": 1}, "recurrence"),
    ({"com.microsoft.RNN": 1}, "recurrence"),
    ({"Relu": 2}, "2 Relu"),
    ({"Relu": 1, "Add": 1, "Neg": 3}, "3 Neg, Add"),
    ({"Gather": 1}, "Gather"),
    ({"Gather": 1, "Softmax": 1}, "embedding"),
    ({"Softmax": 1}, "normalization"),
]


@pytest.mark.parametrize(("operators", "layer"), LAYER_KINDS)
def test_what_a_group_computes(operators: dict[str, int], layer: str) -> None:
    assert summary_of(Counter(operators)) == layer


def test_spans_are_drawn_from_a_share_of_the_whole_on() -> None:
    recorder = Recorder()
    assert spans_of(recorder) is None
    parts = [
        Span("a", "phase", 11.0, 1, 1, {"text": "named"}, 0.002),
        Span("a", "phase", 12.0, 1, 1, {}, 0.0019),
    ]
    recorder.spans = [
        Span("all", "phase", 10.0, 1, 1, {}, 4.0, 3.0, parts),
        Span("late", "phase", 13.5, 1, 1, {}, 0.5),
    ]
    found = spans_of(recorder)
    assert found["seconds"] == 4.0
    assert found["spans"] == [
        ["all", 0.0, 4.0, 0, "phase"],
        ["named", 1.0, 0.002, 1, "phase"],
        ["late", 3.5, 0.5, 0, "phase"],
    ]
    assert [row[:2] for row in found["totals"]] == [["all", 1], ["late", 1], ["a", 2]]
    assert found["totals"][0][2:] == [4.0, 3.0, "phase"]
    assert found["totals"][2][2] == pytest.approx(0.0039)


@pytest.mark.parametrize(
    ("value", "limit", "expected"),
    [
        (None, 3, "?"),
        ("abc", 3, "abc"),
        ("abcd", 3, "abc\N{HORIZONTAL ELLIPSIS} (4 characters)"),
        ("a\x1fb\u202e", 9, "a\\u001fb\\u202e"),
        ("a b", 3, "a b"),
        ("\x80", 3, "\\u0080"),
    ],
)
def test_texts_are_cut_and_escaped(value: str | None, limit: int, expected: str) -> None:
    assert shown(value, limit) == expected
