"""Transposes and Reshapes of their own kind become one; what does nothing goes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from written import Written, counting, evaluate, ops

from smelt.program.instruction import Program
from smelt.program.passes import dead_code_elimination, layout_composition


def composed(program: Program) -> list[str]:
    """What is left; numbers stay, and a second run changes nothing."""
    inputs = counting(program)
    before = evaluate(program, *inputs)
    layout_composition.run(program)
    dead_code_elimination.run(program)
    np.testing.assert_array_equal(evaluate(program, *inputs), before)
    assert not layout_composition.run(program)
    return ops(program)


CHAINS = {
    "two are one": ((2, 3, 4), [(2, 0, 1), (0, 2, 1)], ["Transpose", "Neg"]),
    "an inverse pair": ((2, 3, 4), [(2, 0, 1), (1, 2, 0)], ["Neg"]),
    "equal sizes are no identity": ((3, 3, 3), [(1, 0, 2)], ["Transpose", "Neg"]),
    "ones that move are a view": ((2, 1, 3), [(1, 0, 2)], ["Reshape", "Neg"]),
    "ones that move back": ((2, 1, 3), [(1, 0, 2), (1, 0, 2)], ["Neg"]),
    "what moves nothing": ((2, 3), [(0, 1)], ["Neg"]),
}


@pytest.mark.parametrize(("shape", "perms", "left"), CHAINS.values(), ids=CHAINS)
def test_transposes(shape: tuple[int, ...], perms: list[tuple[int, ...]], left: list[str]) -> None:
    w = Written()
    x = w.input(*shape)
    for perm in perms:
        x = w.transpose(x, *perm)
    assert composed(w.program(w.op("Neg", x))) == left


def test_reshapes() -> None:
    w = Written()
    x = w.op("Reshape", w.input(2, 6), shape=(3, 4))
    assert composed(w.program(w.op("Neg", w.op("Reshape", x, shape=(12,))))) == ["Reshape", "Neg"]
    w = Written()
    x = w.op("Reshape", w.input(2, 6), shape=(3, 4))
    assert composed(w.program(w.op("Neg", w.op("Reshape", x, shape=(2, 6))))) == ["Neg"]


def test_a_transpose_with_another_reader_stays() -> None:
    w = Written()
    once = w.transpose(w.input(3, 3, 3), 2, 0, 1)
    twice = w.transpose(once, 2, 0, 1)
    program = w.program(w.op("Neg", twice), w.op("Neg", once))
    assert composed(program) == ["Transpose", "Transpose", "Neg", "Neg"]
    assert program.instructions[1].ints("perm") == (1, 2, 0)


def test_an_output_is_written() -> None:
    w = Written()
    x = w.input(2, 3)
    program = w.program(w.transpose(w.transpose(x, 1, 0), 1, 0))
    assert composed(program) == ["Reshape"]


@pytest.mark.parametrize("read", ["", "kept", "kept by a Reshape", "read"])
def test_a_reshaped_result_that_has_its_sizes_is_made_at_once(read: str) -> None:
    """Unless what is reshaped is a result, too."""
    w = Written()
    x = w.op("Neg", w.input(6, 5))
    y = w.op("Reshape", w.op("Reshape", x, shape=(2, 3, 5)), shape=(6, 5))
    others = {"kept": x, "read": w.op("Abs", x), "kept by a Reshape": w.op("Reshape", x)}
    program = w.program(y, *([others[read]] if read else []))
    left = composed(program)
    assert left == ["Neg", *{"": [], "read": ["Abs"]}.get(read, ["Reshape"])]
    assert program.outputs[0] == y


def test_unknown_sizes_are_never_equal() -> None:
    w = Written()
    unknown = ir.SymbolicDim(None)
    x = w.op("Reshape", w.input(unknown, unknown), shape=(unknown, unknown))
    program = w.program(w.op("Neg", x))
    layout_composition.run(program)
    assert ops(program) == ["Reshape", "Neg"]


def cut(w: Written, x: int, axis: int, start: int, end: int, step: int = 1) -> int:
    """Some rows of ``x``, as a Slice."""
    shape = list(w.made.slots[x].shape)
    shape[axis] = (end - start) // step
    places = {"starts": (start,), "ends": (end,), "axes": (axis,), "steps": (step,)}
    return w.op("Slice", x, shape=tuple(shape), **places)


def join(w: Written, axis: int, *parts: int) -> int:
    shape = list(w.made.slots[parts[0]].shape)
    shape[axis] = sum(w.made.slots[part].shape[axis] for part in parts)
    return w.op("Concat", *parts, shape=tuple(shape), axis=axis)


def test_parts_that_are_joined_again_are_whole() -> None:
    w = Written()
    x = w.op("Neg", w.input(3, 4, 2))
    parts = [cut(w, x, 1, *ends) for ends in ((0, 1), (1, 1), (1, 3), (3, 4))]
    assert composed(w.program(w.op("Abs", join(w, 1, *parts)))) == ["Neg", "Abs"]


def test_reshapes_of_parts_that_do_nothing_are_between() -> None:
    w = Written()
    x = w.op("Neg", w.input(3, 2))
    parts = []
    for place in range(2):
        flat = w.op("Reshape", cut(w, x, 1, place, place + 1), shape=(3,))
        parts.append(w.op("Reshape", flat, shape=(3, 1)))
    assert composed(w.program(w.op("Abs", join(w, 1, *parts)))) == ["Neg", "Abs"]


@pytest.mark.parametrize("kept", [False, True])
def test_a_whole_that_is_a_result_is_made_at_once(kept: bool) -> None:
    """Unless it is another result, or nobody makes it."""
    w = Written()
    x = w.op("Neg", w.input(4, 2))
    part = w.op("Abs", x)
    joined = join(w, 0, cut(w, x, 0, 0, 3), cut(w, x, 0, 3, 4))
    program = w.program(*([x] if kept else []), joined, part)
    left = composed(program)
    assert left == (["Neg", "Abs", "Slice", "Slice", "Concat"] if kept else ["Neg", "Abs"])
    assert program.outputs[-2:] == (joined, part)


def test_a_whole_that_is_an_input_is_copied_to_a_result() -> None:
    w = Written()
    x = w.input(4, 2)
    program = w.program(join(w, 0, cut(w, x, 0, 0, 3), cut(w, x, 0, 3, 4)))
    assert composed(program) == ["Slice", "Slice", "Concat"]


def test_two_results_of_one_whole() -> None:
    w = Written()
    x = w.op("Neg", w.input(4))
    joined = [join(w, 0, cut(w, x, 0, 0, 1), cut(w, x, 0, 1, 4)) for _ in range(2)]
    assert composed(w.program(*joined)) == ["Neg", "Slice", "Slice", "Concat"]


OTHERS = {
    "another order": ([(2, 4), (0, 2)], 0),
    "a gap": ([(0, 1), (2, 4)], 0),
    "a part twice": ([(0, 2), (0, 2)], 0),
    "a part of it": ([(0, 2), (2, 3)], 0),
    "the end of it": ([(1, 2), (2, 4)], 0),
    "every second": ([(0, 2, 2), (1, 4)], 0),
    "another axis": ([(0, 2), (2, 4)], 1),
}


@pytest.mark.parametrize(("places", "axis"), OTHERS.values(), ids=OTHERS)
def test_other_parts_are_no_whole(places: list[tuple[int, ...]], axis: int) -> None:
    w = Written()
    x = w.op("Neg", w.input(4, 4))
    joined = join(w, axis, *(cut(w, x, 0, *each) for each in places))
    assert composed(w.program(w.op("Abs", joined))) == ["Neg", "Slice", "Slice", "Concat", "Abs"]


def test_parts_of_two_are_no_whole() -> None:
    w = Written()
    x, y = w.op("Neg", w.input(4)), w.op("Neg", w.input(4))
    joined = join(w, 0, cut(w, x, 0, 0, 2), cut(w, y, 0, 2, 4))
    left = composed(w.program(w.op("Abs", joined)))
    assert left == ["Neg", "Neg", "Slice", "Slice", "Concat", "Abs"]


@pytest.mark.parametrize("other", ["input", "Neg", "Transpose"])
def test_a_concat_of_other_operands_than_slices_stays(other: str) -> None:
    w = Written()
    x = w.op("Neg", w.input(2, 2))
    made = {"input": w.input(2, 2), "Neg": x, "Transpose": w.transpose(x, 1, 0)}[other]
    joined = join(w, 0, made, cut(w, x, 0, 0, 1))
    assert "Concat" in composed(w.program(w.op("Abs", joined)))
