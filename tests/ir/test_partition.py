"""Regions are convex, none can grow, and they run one after the other: on drawn graphs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt.ir import constants, text
from smelt.ir.bounds import bounds_of, note_bounds
from smelt.ir.partition import Part, models_of_parts, partition, read_by
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.verify import verify
from smelt.runtime.reference import Reference

TAKEN, LEFT = ("Neg", "Add"), ("Abs", "Mul")


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """Up to 14 nodes of one or two inputs, each a taken operator or not; some are returned."""
    count = draw(st.integers(1, 14))
    names, lines = ["x", "z"], []
    for i in range(count):
        operands = draw(st.lists(st.sampled_from([*names, "c"]), min_size=1, max_size=2))
        taken = draw(st.booleans())
        op_type = (TAKEN if taken else LEFT)[len(operands) - 1]
        lines.append(f"v{i} = {op_type}({', '.join(operands)})")
        names.append(f"v{i}")
    outputs = draw(
        st.lists(st.sampled_from([*names[2:], "x", "c"]), min_size=1, max_size=3, unique=True)
    )
    declared = ", ".join(f"float[3] {name}" for name in outputs)
    constant = "c = Constant<value = float[3] {1,-2,3}>()"
    return f"g (float[3] x, float[3] z) => ({declared}) {{ {constant} {' '.join(lines)} }}"


def takes(node: ir.Node) -> bool:
    return node.op_type in TAKEN


def reached(nodes: set[ir.Node], graph: ir.Graph) -> dict[ir.Node, set[ir.Node]]:
    """What each node depends on, itself included."""
    below: dict[ir.Node, set[ir.Node]] = {}
    for node in graph:
        producers = (value.producer() for value in read_by(node))
        below[node] = {node}.union(*(below[p] for p in producers if p is not None))
    return below


def is_convex(region: set[ir.Node], below: dict[ir.Node, set[ir.Node]]) -> bool:
    """No path leaves the region and comes back."""
    return not any(
        outside not in region and (below[outside] & region)
        for node in region
        for outside in below[node]
    )


def computing(graph: ir.Graph) -> list[ir.Node]:
    return [node for node in graph if node.op_type != "Constant"]


@settings(deadline=None)
@given(graphs())
def test_regions_are_convex_maximal_and_ordered(source: str) -> None:
    graph = text.parse(source).graph
    parts = partition(graph, takes)
    assert sorted(id(n) for part in parts for n in part.nodes) == sorted(map(id, computing(graph)))
    assert all(takes(node) == part.taken for part in parts for node in part.nodes)
    below = reached(set(graph), graph)
    regions = [set(part.nodes) for part in parts if part.taken]
    assert all(is_convex(region, below) for region in regions)
    assert not any(is_convex(a | b, below) for a, b in combinations(regions, 2))
    seen: set[ir.Node] = set()
    for part in parts:
        seen.update(part.nodes)
        assert all(n in seen for node in part.nodes for n in below[node] if n.op_type != "Constant")


@settings(deadline=None)
@given(graphs())
def test_parts_in_order_compute_the_whole(source: str) -> None:
    x, z = np.array([1, -2, 3], np.float32), np.array([0.5, -0.0, 7], np.float32)
    expected = Reference(text.parse(source))(x, z)
    model = text.parse(source)
    returned = [value.name for value in model.graph.outputs]
    parts = partition(model.graph, takes)
    interfaces = [([v.name for v in p.reads], [v.name for v in p.writes]) for p in parts]
    known = {"x": x, "z": z}
    for (reads, writes), part in zip(interfaces, models_of_parts(model, parts), strict=True):
        verify(part)
        assert [value.name for value in part.graph.inputs] == reads
        results = Reference(part)(*(known[name] for name in reads))
        known.update(zip(writes, results, strict=True))
    for name, wanted in zip(returned, expected, strict=True):
        np.testing.assert_array_equal(known[name], wanted)


def parts_of(body: str, **options: object) -> list[tuple[bool, str]]:
    graph = text.parse(f"g (float[3] x) => (float[3] y) {{ {body} }}").graph
    found: list[Part] = partition(graph, takes, **options)  # type: ignore[arg-type]
    return [(part.taken, " ".join(node.op_type for node in part.nodes)) for part in found]


def test_a_detour_over_another_node_parts_a_region() -> None:
    assert parts_of("a = Neg(x) b = Abs(a) y = Add(a, b)") == [
        (True, "Neg"), (False, "Abs"), (True, "Add"),
    ]  # fmt: skip


def test_branches_side_by_side_are_one_region() -> None:
    assert parts_of("a = Neg(x) b = Neg(x) c = Abs(x) y = Add(a, b)") == [
        (False, "Abs"), (True, "Neg Neg Add"),
    ]  # fmt: skip


def test_a_region_that_costs_more_than_it_saves_is_given_up() -> None:
    body = "a = Neg(x) b = Abs(a) c = Neg(b) d = Neg(c) y = Neg(d)"
    dear = lambda nodes: 2 - len(nodes)  # noqa: E731
    assert parts_of(body, cost=dear) == [(False, "Neg Abs"), (True, "Neg Neg Neg")]


def test_nodes_of_constants_join_their_reader() -> None:
    constant = "c = Constant<value = float[3] {1,-2,3}>()"
    body = f"{constant} w = Abs(c) v = Neg(w) a = Neg(x) b = Abs(a) m = Mul(b, w) y = Add(m, v)"
    assert parts_of(body) == [
        (True, "Neg"), (False, "Abs Abs Mul"), (True, "Neg Add"),
    ]  # fmt: skip


def test_a_part_is_told_the_sizes_in_its_shapes() -> None:
    model = text.parse("""g (float[B,3] x) => (float[3,B] y, float[B,3] z) {
        t = Transpose(x) f = Constant<value_ints = [-1]>() a = Reshape(t, f) b = Neg(a)
        s = Constant<value_ints = [3,-1]>() y = Reshape(b, s) z = Mul(x, x)
    }""")
    ShapeInference(model).infer_model()
    note_bounds(model, {"B": (1, 8)})
    pieces = models_of_parts(model, partition(model.graph, takes))
    assert [[each.name for each in piece.graph.inputs] for piece in pieces] == [
        ["x"], ["a", "x"], ["b", "x"],
    ]  # fmt: skip
    assert all(bounds_of(piece.graph) == {"B": (1, 8)} for piece in pieces)


@pytest.mark.parametrize("captured", ["x", "a"])
def test_values_that_a_branch_captures_are_inputs_of_its_region(captured: str) -> None:
    source = f"""g (bool c, float[3] x) => (float[3] y) {{
        b = If (c) <then_branch = t () => (float[3] r) {{ r = Abs({captured}) }},
                    else_branch = e () => (float[3] s) {{ s = Mul({captured}, x) }}>
        y = Neg(b)
    }}"""
    if captured == "a":
        source = source.replace("b = If", "a = Neg(x) b = If")
    model = text.parse(source)
    parts = partition(model.graph, takes)
    assert [part.taken for part in parts] == (
        [True, False, True] if captured == "a" else [False, True]
    )
    middle = next(i for i, part in enumerate(parts) if part.nodes[0].op_type == "If")
    part = models_of_parts(model, parts)[middle]
    verify(part)
    assert constants.tensor_of(part.graph.inputs[0]) is None
    assert {value.name for value in part.graph.inputs} == {"c", "x", captured}
