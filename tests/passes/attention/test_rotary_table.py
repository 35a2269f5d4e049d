"""Rotary embeddings whose angles are the first rows of a table, as in CodeGen."""

from __future__ import annotations

import numpy as np
import pytest

from smelt import compile as compile_model
from smelt import optimize
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.runtime.runner import run

ROWS = 8
SHAPES = {
    "heads first": ("B,5,S,4", 2, "z"),
    "positions first": ("B,S,5,4", 1, "i"),
    "one batch": ("1,S,5,4", 1, "i"),
}


def source(shape: str, positions: int, beside: str, rows: int = ROWS) -> str:
    """Return a rotation by halves with rows 0 to S of a table of ``rows`` angles."""
    table = ",".join(
        f"{0.3 * (row + 1) / (part + 1):.3f}" for row in range(rows) for part in (0, 1)
    )
    unit = "c = Unsqueeze(c0, i) s = Unsqueeze(s0, i) " if beside == "i" else ""
    cos, sin = ("c", "s") if unit else ("c0", "s0")
    return (
        f"g (float[{shape}] x) => (float[{shape}] y) <float[{rows},2] table = {{{table}}}, "
        "int64[1] z = {0}, int64[1] i = {1}, int64[1] h = {2}, int64[1] d = {4}, int64[1] a = {3}> {"
        f"n = Shape<start={positions},end={positions + 1}>(x) t = Slice(table, z, n, z) "
        f"c0 = Cos(t) s0 = Sin(t) {unit}"
        "p = Slice(x, z, h, a) q = Slice(x, h, d, a) "
        f"pc = Mul(p, {cos}) qs = Mul(q, {sin}) l = Sub(pc, qs) qc = Mul({cos}, q) "
        f"ps = Mul(p, {sin}) m = Add(qc, ps) y = Concat<axis=3>(l, m) }}"
    )


def numbers(shape: str, positions: int) -> np.ndarray:
    sizes = {"B": 2, "S": positions}
    dims = [sizes.get(dim) or int(dim) for dim in shape.split(",")]
    return np.random.default_rng(0).standard_normal(dims).astype(np.float32)


@pytest.mark.parametrize("name", SHAPES)
def test_rows_of_a_table(name: str) -> None:
    shape, axis, beside = SHAPES[name]
    before = text.parse(source(shape, axis, beside), 23)
    after = optimize(before, pipeline="fuse-rotary-embedding")
    assert "RotaryEmbedding" in {node.op_type for node in after.graph}
    for positions in (1, 3, ROWS):
        x = numbers(shape, positions)
        np.testing.assert_allclose(run(after, [x])[0], run(before, [x])[0], atol=1e-6)


@pytest.mark.parametrize("name", SHAPES)
def test_more_positions_than_rows_are_refused(name: str) -> None:
    """The source refuses them; a Gather beyond its table might not."""
    shape, axis, beside = SHAPES[name]
    model = text.parse(source(shape, axis, beside), 23)
    after = optimize(model, pipeline="fuse-rotary-embedding")
    x = numbers(shape, ROWS + 1)
    for each in (model, after):
        with pytest.raises(SmeltError):
            run(each, [x])
    host = compile_model(after, target="host", engine="numpy")
    np.testing.assert_allclose(
        host(numbers(shape, 3))[0], run(model, [numbers(shape, 3)])[0], atol=1e-6
    )
    with pytest.raises(SmeltError):
        host(x)


def test_a_table_of_one_row_turns_all_positions_alike() -> None:
    shape, axis, beside = SHAPES["heads first"]
    before = text.parse(source(shape, axis, beside, rows=1), 23)
    after = optimize(before, pipeline="fuse-rotary-embedding")
    assert "RotaryEmbedding" not in {node.op_type for node in after.graph}


@pytest.mark.parametrize("beside", ["i", "z"], ids=["a dim of heads", "no dim of heads"])
def test_one_position(beside: str) -> None:
    graph = source("B,1,5,4", 1, beside).replace(
        "t = Slice(table, z, n, z)", "t = Slice(table, z, i, z)"
    )
    before = text.parse(graph, 23)
    after = optimize(before, pipeline="fuse-rotary-embedding")
    x = np.random.default_rng(0).standard_normal((2, 1, 5, 4)).astype(np.float32)
    np.testing.assert_allclose(run(after, [x])[0], run(before, [x])[0], atol=1e-6)
