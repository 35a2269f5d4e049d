"""Bounds of the elements of short integer vectors."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.value_facts.element_ranges import ANY, DEPTH, MAX_ELEMENTS, Range, ranges_of
from smelt.runtime.reference import Reference

HEAD = (
    "g (int64[2] x, int64[2] w, int64 s, float[M,3] t) => (y) "
    "<int64 two = {2}, int64 five = {5}, int64[2] low = {1,-7}, int64[1] one = {1}, "
    "int64[1] first = {0}, int32[2] narrow = {3,4}> "
)


def ranges(body: str) -> list[Range] | None:
    model = text.parse(f"{HEAD} {{ {body} }}")
    ShapeInference(model).infer_model()
    return ranges_of(model.graph.outputs[0])


FOUND: dict[str, list[Range] | None] = {
    "y = Identity(low)": [(1, 1), (-7, -7)],
    "y = Identity(narrow)": [(3, 3), (4, 4)],
    "y = Identity(x)": [ANY, ANY],
    "y = Neg(low)": [(-1, -1), (7, 7)],
    "y = Unsqueeze(five, first)": [(5, 5)],
    "v = Unsqueeze(five, first) y = Squeeze(v, first)": [(5, 5)],
    "y = Concat<axis=0>(low, x, one)": [(1, 1), (-7, -7), ANY, ANY, (1, 1)],
    "y = Max(x, low)": [(1, None), (-7, None)],
    "y = Min(x, low)": [(None, 1), (None, -7)],
    "y = Max(low, two)": [(2, 2), (2, 2)],
    "y = Min(two, low)": [(1, 1), (-7, -7)],
    "m = Max(x, low) y = Min(m, five)": [(1, 5), (-7, 5)],
    "m = Min(x, five) y = Max(m, low)": [(1, 5), (-7, 5)],
    "m = Min(x, five) n = Max(w, two) y = Max(m, n)": [(2, None), (2, None)],
    "m = Min(x, five) n = Min(w, two) y = Max(m, n)": [(None, 5), (None, 5)],
    "m = Max(x, five) n = Max(w, two) y = Min(m, n)": [(2, None), (2, None)],
    "y = Clip(x, two, five)": [(2, 5), (2, 5)],
    "y = Clip(x, two)": [(2, None), (2, None)],
    "y = Clip(x, , five)": [(None, 5), (None, 5)],
    "y = Clip(x)": [ANY, ANY],
    "y = Clip(low, two, five)": [(2, 2), (2, 2)],
    "y = Max(s, two)": [(2, None)],
    "y = Max(x, s)": [ANY, ANY],
    "y = Identity(t)": None,
}


@pytest.mark.parametrize("body", FOUND)
def test_bounds(body: str) -> None:
    assert ranges(body) == FOUND[body]


def test_vectors_up_to_a_length_and_chains_up_to_a_depth_are_read() -> None:
    long = text.parse(f"g (int64[{MAX_ELEMENTS + 1}] x, int64[{MAX_ELEMENTS}] z) => () {{}}")
    beyond, at_most = long.graph.inputs
    assert ranges_of(beyond) is None
    assert ranges_of(at_most) == [ANY] * MAX_ELEMENTS
    for links, apart in ((DEPTH - 2, True), (DEPTH - 1, False)):
        chain = "".join(f" v{i + 1} = Identity(v{i})" for i in range(links))
        first, second = ranges(f"v0 = Max(x, low){chain} y = Identity(v{links})") or ()
        assert (first != second) == apart


OPERATORS = ("Max", "Min", "Clip", "Neg", "Add", "Identity")


@pytest.mark.parametrize("seed", range(12))
def test_elements_of_random_chains_are_inside(seed: int) -> None:
    random = Random(seed)
    known, lines = ["x", "w", "s", "two", "five", "low"], []
    for name in (f"v{i}" for i in range(6)):
        op_type = random.choice(OPERATORS)
        operands = random.choices(known, k=1 if op_type in ("Neg", "Identity") else 2)
        if op_type == "Clip":
            operands = [operands[0], *random.sample(["two", "five"], 2)]
        lines.append(f"{name} = {op_type}({', '.join(operands)})")
        known.append(name)
    last = "Add" if seed % 2 else "Max"
    body = f"{' '.join(lines)} e = {last}(v5, low) y = Concat<axis=0>(x, e)"
    found = ranges(body)
    assert found is not None
    run = Reference(text.parse(f"{HEAD} {{ {body} }}"))
    chance = np.random.default_rng(seed)
    for _ in range(20):
        x, w = chance.integers(-9, 10, (2, 2))
        (y,) = run(x, w, chance.integers(-9, 10), np.ones((2, 3), np.float32))
        for element, (low, high) in zip(y.tolist(), found, strict=True):
            assert low is None or low <= element
            assert high is None or element <= high
