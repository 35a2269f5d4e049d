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


def test_what_else_reads_a_part_of_a_chain_keeps_it() -> None:
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


def test_unknown_sizes_are_never_equal() -> None:
    w = Written()
    unknown = ir.SymbolicDim(None)
    x = w.op("Reshape", w.input(unknown, unknown), shape=(unknown, unknown))
    program = w.program(w.op("Neg", x))
    layout_composition.run(program)
    assert ops(program) == ["Reshape", "Neg"]
