"""Loops that collect results of an open or large number of rounds: while_loop with a tensor for each."""

from __future__ import annotations

import numpy as np
import pytest
from targets.coreml.packages import computed, types, written
from targets.coreml.test_target import errors

from smelt.ir import text
from smelt.runtime.runner import run
from smelt.targets.coreml.collected_results import is_unrolled

SCAN = """g (float[B,3] s, float[T,B,3] x) => (last, rows) {{ last, rows = Scan<num_scan_inputs=1,
scan_input_directions=[{i}], scan_output_directions=[{o}], scan_output_axes=[{axis}],
body=b (float[B,3] c, float[B,3] r) => (float[B,3] n, float[B,3] y) {{ n = Add(c, r) y = Mul(n, r) }}>
(s, x) }}"""
OPEN = {"T": (1, 9), "B": (1, 4)}


def checked(model: str, dims: dict, sizes: tuple[int, int]) -> list[str]:
    """Return the operators of the package, which computes what ``model`` does at ``sizes``."""
    rng, (length, batch) = np.random.default_rng(0), sizes
    feeds = [rng.random(each, np.float32) for each in ((batch, 3), (length, batch, 3))]
    artifact = written(model, dims=dims)
    for found, wanted in zip(
        computed(artifact, *feeds), run(text.parse(model), feeds), strict=True
    ):
        np.testing.assert_allclose(found, wanted, 1e-6)
    return types(artifact)


@pytest.mark.parametrize("sizes", [(1, 1), (5, 2)])
@pytest.mark.parametrize(("i", "o", "axis"), [(0, 0, 0), (1, 0, 0), (0, 1, 1), (1, 1, -1)])
def test_an_open_number_of_rows(i: int, o: int, axis: int, sizes: tuple[int, int]) -> None:
    assert "while_loop" in checked(SCAN.format(i=i, o=o, axis=axis), OPEN, sizes)


@pytest.mark.parametrize(("length", "loops"), [(128, False), (129, True)])
def test_a_large_number_of_rows(length: int, loops: bool) -> None:
    model = SCAN.format(i=0, o=0, axis=0).replace("[T,B", f"[{length},B").replace("B,", "2,")
    assert ("while_loop" in checked(model, {}, (length, 2))) == loops


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("y = Mul(n, r)", "z = Mul(n, r) y = Greater(z, r)", "is bool"),
        ("y = Mul(n, r)", "z = NonZero(r) y = Cast<to=1>(z)", "a size that no input has"),
    ],
)
def test_results_of_rounds_that_core_ml_cannot_collect(
    before: str, after: str, reason: str
) -> None:
    model = SCAN.format(i=0, o=0, axis=0).replace(before, after).replace("float[B,3] y)", "y)")
    assert any(reason in (error.why or "") for error in errors(model, dims=OPEN))


LOOP = (
    "g (float[3] s) => (last, rows) <int64 n = {{{n}}}, bool t = {{1}}>"
    " {{ last, rows = Loop(n, t, s) <body = b (int64 i, bool go, float[3] v)"
    " => (bool more, float[3] w, {kind} y) {{ more = Identity(go) w = Mul(v, v) {nodes} }}> }}"
)
FEW, SMALL = "f = Cast<to = 1>(i) y = Add(w, f)", "float[3]"
MANY = f"p0 = Abs(w) {' '.join(f'p{k + 1} = Sin(p{k})' for k in range(400))} y = Neg(p400)"


@pytest.mark.parametrize(
    ("rounds", "nodes", "kind", "loops"),
    [
        (128, FEW, SMALL, False),
        (129, FEW, SMALL, True),
        (24, MANY, SMALL, False),
        (25, MANY, SMALL, True),
        (25, f"{MANY.replace('y = Neg', 'z = Neg')} y = Greater(z, w)", "bool[3]", False),
    ],
)
def test_a_loop_of_many_rounds_or_nodes(rounds: int, nodes: str, kind: str, loops: bool) -> None:
    model = LOOP.format(n=rounds, nodes=nodes, kind=kind)
    body = text.parse(model, 21).graph[0].attributes["body"].as_graph()
    assert is_unrolled(body, rounds, (2, 1)) != loops
    if loops:
        artifact, start = written(model), np.array([0.5, 1, 0.9], np.float32)
        assert "while_loop" in types(artifact)
        for found, wanted in zip(artifact(start), run(text.parse(model, 21), [start]), strict=True):
            np.testing.assert_allclose(found, wanted, 1e-5)


def test_a_state_that_grows_is_unrolled() -> None:
    nodes = MANY.replace("Abs(w)", "Abs(v)").replace(
        "y = Neg(p400)", "w = Concat <axis = 0> (p400, v)"
    )
    (loop,) = text.parse(
        "g (float[N] s, int64 n, bool t) => (y) { y = Loop(n, t, s) <body = b (int64 i, bool go, float[A] v)"
        f" => (bool more, float[B] w) {{ more = Identity(go) {nodes} }}> }}"
    ).graph
    assert is_unrolled(loop.attributes["body"].as_graph(), 100, (2, 1))
