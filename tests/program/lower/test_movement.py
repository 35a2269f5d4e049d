"""Split of a symbolic axis: how its parts are rounded at each opset, and what is refused."""

from __future__ import annotations

import pytest
from lowered import lowered

from smelt.errors import ErrorList


def ends(opset: int, attributes: str, *outputs: str) -> list[str]:
    """Return the sizes of the parts of an axis of N elements, and the ends of all parts but the
    last.
    """
    names = ", ".join(outputs)
    program = lowered(f"g (float[N] x) => ({names}) {{ {names} = Split<{attributes}>(x) }}", opset)
    sizes = [str(dim) for slot in program.outputs for dim in program.slots[slot].shape]
    return sizes + [str(step.attributes["ends"][0]) for step in program.instructions[:-1]]


@pytest.mark.parametrize("opset", [13, 17])
def test_parts_are_equal_before_opset_18(opset: int) -> None:
    half = "floor(N/2)"
    assert ends(opset, "axis=0", "a", "b") == [half, half, half]


@pytest.mark.parametrize("opset", [18, 23])
def test_the_last_part_may_be_smaller_from_opset_18(opset: int) -> None:
    halves = ends(opset, "axis=0, num_outputs=2", "a", "b")
    assert halves == ["floor(N/2 + 1/2)", "floor(N/2)", "floor(N/2 + 1/2)"]
    first, _, last, end, next_end = ends(opset, "axis=0, num_outputs=3", "a", "b", "c")
    assert first == end == "floor(N/3 + 2/3)"
    assert next_end == "2*floor(N/3 + 2/3)"
    assert last != first


@pytest.mark.parametrize("size", ["N", "7"])
def test_another_number_of_parts_than_outputs_is_refused(size: str) -> None:
    with pytest.raises(ErrorList, match="for 2 outputs"):
        lowered(f"g (float[{size}] x) => (a, b) {{ a, b = Split<num_outputs=3>(x) }}")
