"""A run whose data lead to other sizes than the model declares ends, also where those are empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import text

ENGINES: dict[str, dict[str, Any]] = {
    "numpy": {"target": "host", "engine": "numpy"},
    "native": {"target": "host", "engine": "native"},
    "c": {"target": "c"},
}
F = np.float32


@dataclass(frozen=True)
class Case:
    """A graph, its first inputs, and the last one: as declared, and otherwise."""

    graph: str
    given: Sequence[np.ndarray]
    right: np.ndarray
    wrong: np.ndarray


CASES = {
    "an Expand to no rows": Case(
        "g (float[1,3] x, int64[2] s) => (float[0,3] y) { y = Expand(x, s) }",
        [np.zeros((1, 3), F)],
        np.array([0, 3]),
        np.array([2, 3]),
    ),
    "nothing but zeros": Case(
        "g (float[5] x) => (int64[1,0] y) { y = NonZero(x) }", [], np.zeros(5, F), np.ones(5, F)
    ),
    "nothing kept": Case(
        "g (float[5] x, bool[5] c) => (float[0] y) { y = Compress(x, c) }",
        [np.zeros(5, F)],
        np.zeros(5, bool),
        np.ones(5, bool),
    ),
    "a branch that cannot run": Case(
        """g (float[0,3] x, float[0,4] w, bool c) => (float[0,3] y) {
             y = If<then_branch = t () => (p) { p = Add(x, w) },
                    else_branch = e () => (q) { q = Neg(x) }>(c) }""",
        [np.zeros((0, 3), F), np.zeros((0, 4), F)],
        np.array(False),
        np.array(True),
    ),
    "a Reshape whose result is declared": Case(
        "g (float[6] x, int64[2] s) => (float[2,3] y) { y = Reshape(x, s) }",
        [np.arange(6, dtype=F)],
        np.array([2, 3]),
        np.array([3, 2]),
    ),
    "a Reshape of which one size is given": Case(
        """g (float[6] x, int64[1] s) => (float[2,3] y) { m = Constant<value_ints=[-1]>()
             t = Concat<axis=0>(s, m) y = Reshape(x, t) }""",
        [np.arange(6, dtype=F)],
        np.array([2]),
        np.array([3]),
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CASES)
def test_it_ends(name: str, engine: str) -> None:
    case = CASES[name]
    source = text.parse(case.graph, 23)
    artifact = smelt.compile(source, **ENGINES[engine])
    assert artifact.ready(None)
    (got,) = artifact(*case.given, case.right)
    shape = source.graph.outputs[0].shape
    assert shape is not None
    assert got.shape == tuple(shape.dims)
    with pytest.raises(UsageError, match="E670"):
        artifact(*case.given, case.wrong)
