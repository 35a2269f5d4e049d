"""Each rule pairs the sizes that have to agree: a size that differs by one breaks a pair."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from smelt.program.agreeing_sizes import AT_MOST, EQUAL, Shape
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import Instruction

PARTS = [(2, 3, 3), (2, 3, 3)]
WINDOW = {"kernel_shape": (3, 2), "group": 2}
LSTM = {"cell": "LSTM"}

CASES: dict[str, list[tuple[dict, list[Shape], list[Shape], str]]] = {
    "Reshape": [({}, [(2, 6), (2,)], [(3, 4)], "1.0")],
    "Expand": [({}, [(3, 1, 4), (4,)], [(2, 3, 5, 4)], "1.0")],
    "DotGeneral": [({"dims": DotDims((2,), (1,), (0,), (0,))}, [(2, 3, 4), (2, 4, 5)], [(2, 3, 5)], "")],
    "MatMulInteger": [
        ({}, [(2, 3, 4), (2, 4, 5)], [(2, 3, 5)], "0.1 1.2"),
        ({}, [(2, 1, 3, 4), (5, 4, 6)], [(2, 5, 3, 6)], "0.2 1.2"),
        ({}, [(4,), (2, 4, 5)], [(2, 5)], "1.2"),
        ({}, [(2, 3, 4), (4,)], [(2, 3)], "0.1"),
    ],
    "QLinearMatMul": [({}, [(2, 3, 4), (), (), (4, 5), (), (), (), ()], [(2, 3, 5)], "0.1 3.1")],
    "Conv": [
        (WINDOW, [(5, 6, 9, 9), (4, 3, 3, 2), (4,)], [(5, 4, 7, 8)], "0.0 0.2 0.3"),
        (WINDOW, [(5, 6, 9, 9), (4, 3, 3, 2)], [(5, 4, 7, 8)], "0.0 0.2 0.3"),
    ],
    "ConvInteger": [(WINDOW, [(5, 6, 9, 9), (4, 3, 3, 2), ()], [(5, 4, 7, 8)], "0.0 0.2 0.3")],
    "QLinearConv": [
        (WINDOW, [(5, 6, 9, 9), (), (), (4, 3, 3, 2), (), (), (), (), (4,)], [(5, 4, 7, 8)], "0.0 0.2 0.3"),
    ],
    "ConvTranspose": [(WINDOW, [(5, 6, 9, 9), (6, 3, 3, 2), (6,)], [(5, 6, 11, 10)], "0.0 0.2 0.3")],
    "QuantizeLinear": [
        ({"axis": 1}, [(2, 3), (3,), (3,)], [(2, 3)], "0.0"),
        ({"axis": 0}, [(2, 3), (1,), ()], [(2, 3)], "0.0 0.1"),
        ({"axis": 0}, [(2, 3), (), ()], [(2, 3)], "0.0 0.1"),
    ],
    "DequantizeLinear": [({"axis": 0}, [(2, 3), (2,)], [(2, 3)], "0.1")],
    "Concat": [({"axis": 1}, [(2, 3), (2, 4)], [(2, 7)], "")],
    "Pad": [({"pads": (1, 0, 2, 3)}, [(2, 3)], [(5, 6)], "")],
    "Slice": [({"starts": (1,), "ends": (9,), "steps": (1,), "axes": (1,)}, [(4, 6, 5)], [(4, 5, 5)], "0.0 0.2")],
    **{
        op: [({}, [(2, 3, 5), (3,), (3,)], [(2, 3, 5)], "0.0 0.2")]
        for op in ("BatchNormalization", "InstanceNormalization", "GroupNormalization")
    },
    **{
        op: [({}, [(2, 3, 5), (3, 5), (1, 5), ()], [(2, 3, 5)], "0.0")]
        for op in ("LayerNormalization", "RMSNormalization")
    },
    "GatherND": [({"batch_dims": 1}, [(2, 3, 4), (2, 5, 1)], [(2, 5, 4)], "0.1 0.2 1.1 1.2")],
    "ScatterND": [({}, [(3, 4), (5, 1), (5, 4)], [(3, 4)], "0.0")],
    "ScatterElements": [({"axis": 1}, [(3, 4), (2, 9), (2, 9)], [(3, 4)], "0.0 0.1")],
    "Recurrence": [
        (LSTM, [(7, 2, 12), (3, 12), (2, 3), (2, 3), (9,), (3,), (2,)], [(7, 2, 3)], "0.0"),
        (LSTM, [(7, 2, 12), (3, 12), (2, 3), (2, 3), (), (), ()], [(7, 2, 3)], "0.0"),
    ],
    "NonMaxSuppression": [({}, [(2, 6, 4), (2, 3, 6), ()], [(9, 3)], "1.1")],
    "Loop": [({"states": 1, "reads": (0, 1)}, [(), (), (3,), (5, 2), (5,)], [(3,)], "2.0 3.1")],
    **{op: [({}, [(2, 3, 3)], [(2,)], "0.0")] for op in EQUAL if EQUAL[op] is EQUAL["Det"]},
    **{
        op: [({}, PARTS, PARTS, "")] for op in EQUAL if EQUAL[op] is EQUAL["smelt::ComplexEig"]
    },
    **{op: [({}, [(3, 2), (3, 2)], [], "")] for op in EQUAL if EQUAL[op] is EQUAL["smelt::ComplexLU"]},
    "smelt::TriangularSolve": [
        ({"left_side": 1}, [(2, 3, 3), (2, 3, 5)], [(2, 3, 5)], "1.2"),
        ({"left_side": 0}, [(2, 3, 3), (2, 5, 3)], [(2, 5, 3)], "1.1"),
    ],
    "smelt::ComplexTriangularSolve": [({"left_side": 1}, [*PARTS, (2, 3, 5), (2, 3, 5)], [(2, 3, 5)] * 2, "")],
    "smelt::TridiagonalSolve": [({}, [(2, 3), (2, 3), (2, 3), (2, 3, 5)], [(2, 3, 5)], "3.2")],
    "smelt::HouseholderProduct": [({}, [(2, 5, 3), (2, 3)], [(2, 5, 3)], "0.1 0.2 1.1")],
}  # fmt: skip
"""Attributes, shapes of operands and results, and the sizes that may differ as ``operand.dim``."""

EACH = [pytest.param(op, *case, id=f"{op} {i}") for op in CASES for i, case in enumerate(CASES[op])]


def changed(shapes: list[Shape]) -> Iterator[tuple[str, list[Shape]]]:
    """Yield ``operand.dim`` and ``shapes`` with this size one larger, then one smaller."""
    for operand, shape in enumerate(shapes):
        for dim in range(len(shape)):
            for by in (1, -1):
                other = list(shapes)
                other[operand] = (*shape[:dim], shape[dim] + by, *shape[dim + 1 :])
                yield f"{operand}.{dim}", other


def disagree(op: str, attributes: dict, read: list[Shape], made: list[Shape]) -> bool:
    """Whether a pair of sizes differs, or the shapes differ in rank."""
    try:
        return any(a != b for a, b in EQUAL[op](Instruction(op, (), (), attributes), read, made))
    except ValueError:  # ``zip(..., strict=True)``
        return True


def test_every_rule_has_a_case() -> None:
    assert CASES.keys() == EQUAL.keys()


@pytest.mark.parametrize(("op", "attributes", "read", "made", "free"), EACH)
def test_a_size_that_is_not_free_breaks_a_pair(
    op: str, attributes: dict, read: list[Shape], made: list[Shape], free: str
) -> None:
    assert not disagree(op, attributes, read, made)
    found = {place for place, other in changed(read) if disagree(op, attributes, other, made)}
    assert found == {place for place, _ in changed(read)} - set(free.split())


LIMITS: dict[str, tuple[dict, list[Shape], list[Shape], set[str]]] = {
    "GatherElements": ({"axis": 1}, [(3, 4, 5), (3, 9, 5)], [(3, 9, 5)], {"1.0", "1.2"}),
    "ScatterElements": ({"axis": 0}, [(3, 4), (9, 4), (9, 4)], [(3, 4)], {"1.1"}),
    "TopK": ({"axis": 1}, [(3, 4), (1,)], [(3, 4), (3, 4)], set()),
    "smelt::HouseholderProduct": ({}, [(2, 3, 3), (2, 3)], [(2, 3, 3)], {"1.1"}),
}
"""As above, with the sizes at their limit, and those that must not grow."""


def test_sizes_that_grow_beyond_their_limit() -> None:
    assert LIMITS.keys() == AT_MOST.keys()
    for op, (attributes, read, made, limited) in LIMITS.items():
        step = Instruction(op, (), (), attributes)
        exceeds = {
            place
            for place, other in changed(read)
            if sum(map(sum, other)) > sum(map(sum, read))
            and any(a > b for a, b in AT_MOST[op](step, other, made))
        }
        assert exceeds == limited, op
        assert all(a <= b for a, b in AT_MOST[op](step, read, made)), op
