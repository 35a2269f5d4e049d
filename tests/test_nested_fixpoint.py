"""What nested graphs declare of their results keeps nothing from the first run.

In each model the shape of ``h`` decides an inner If. Only once that is folded is it plain that a
mean and an Unsqueeze are a mean that keeps its axis, whatever sizes the graphs around declare.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from fixpoint import optimized
from onnx_ir import from_proto

from smelt.ir import scope, text
from smelt.runtime.runner import run

KINDS = ("If", "Loop", "Stack", "Scan")
NESTS = [
    *product(KINDS),
    ("If", "Loop"),
    ("Scan", "If"),
    ("If", "If", "If"),
    ("If", "Scan", "Stack"),
]

BY_RANK = """
    h = Relu(x)  sizes = Shape(h)  rank = Size(sizes)  is_matrix = Equal(rank, two)
    chosen = If(is_matrix) <
        then_branch = matrix () => (DECLARED same) { same = Identity(h) },
        else_branch = vector () => (DECLARED wide) { wide = Unsqueeze(h, axis) }>
    MEAN  kept = Unsqueeze(mean, axis)  centred = Sub(h, kept)
"""
BY_SIZE = """
    h = Relu(x)  twice = Concat<axis = 1>(h, h)  sizes = Shape(twice)
    columns = Gather(sizes, one)  is_narrow = Less(columns, two)
    chosen = If(is_narrow) <
        then_branch = flat () => (DECLARED row) { row = Reshape(twice, one_row) },
        else_branch = turned () => (DECLARED again) {
            turn = Transpose<perm = [1, 0]>(twice)  again = Transpose<perm = [1, 0]>(turn) }>
    MEAN  kept = Unsqueeze(mean, axis)  centred = Sub(h, kept)
"""
AROUND = {
    "If": """
    r# = If(c) <then_branch = then# () => (DECLARED INNER) { BODY },
                else_branch = else# () => (DECLARED e#) { e# = Sigmoid(x) }>""",
    "Loop": """
    r# = Loop(three, t, x) <body = body# (int64 i#, bool c#, DECLARED s#)
        => (bool d#, DECLARED n#) { d# = Identity(c#) BODY n# = Add(s#, INNER) }>""",
    "Stack": """
    same#, all# = Loop(three, t, x) <body = body# (int64 i#, bool c#, DECLARED s#)
        => (bool d#, DECLARED n#, DECLARED INNER) { d# = Identity(c#) BODY n# = Identity(s#) }>
    most# = ReduceMax<keepdims = 0>(all#)  r# = Add(same#, most#)""",
    "Scan": """
    rows# = Unsqueeze(x, zero)
    r#, all# = Scan<num_scan_inputs = 1, body = body# (DECLARED s#, DECLARED x#)
        => (DECLARED n#, DECLARED o#) { BODY n# = Add(s#, INNER) o# = Mul(x#, INNER) }>(x, rows#)""",
}


def nest(kinds: tuple[str, ...], decided: str, declared: str, opset: int) -> str:
    inner, body = "centred", decided
    for depth, kind in enumerate(kinds):
        body = AROUND[kind].replace("BODY", body).replace("INNER", inner).replace("#", str(depth))
        inner = f"r{depth}"
    old = "mean = ReduceMean<axes = [1], keepdims = 0>(chosen)"
    new = "mean = ReduceMean<keepdims = 0>(chosen, axis)"
    body = body.replace("DECLARED", declared).replace("MEAN", old if opset < 18 else new)
    columns = "S" if decided is BY_RANK else 3
    return f"""agraph (bool c, float[B, {columns}] x) => (float[P, Q] y)
    <bool t = {{1}}, int64 two = {{2}}, int64 one = {{1}}, int64 three = {{3}},
     int64[1] axis = {{1}}, int64[1] zero = {{0}}, int64[2] one_row = {{1, -1}}>
    {{ {body} y = Identity({inner}) }}"""


@pytest.mark.parametrize("decided", [BY_RANK, BY_SIZE], ids=["rank", "size"])
@pytest.mark.parametrize(
    ("declared", "opset"), [("float[u, v]", 16), ("float[B, v]", 21), ("float[]", 13)]
)
@pytest.mark.parametrize("kinds", NESTS, ids="-".join)
def test_a_shape_decides(kinds: tuple[str, ...], decided: str, declared: str, opset: int) -> None:
    if declared == "float[]" and "Scan" in kinds:
        declared = "float[u, v]"  # ONNX Runtime wants to know the rank of what a Scan returns
    source = text.parse(nest(kinds, decided, declared, opset), opset)
    once = optimized(source)
    assert once == optimized(once)
    if decided is BY_SIZE or "Loop" not in kinds:  # a state of open rank leaves its body unknown
        found = [node.op_type for node in scope.nodes(from_proto(once))]
        assert "Unsqueeze" not in found or "Scan" in kinds
        assert found.count("If") == kinds.count("If")
    inputs = [np.array(True), np.arange(-3, 3, dtype=np.float32).reshape(2, 3)]
    np.testing.assert_array_equal(run(source, inputs), run(from_proto(once), inputs))
