"""Sizes of results computed from sizes of operands, where shape inference has none.

They are numbers in a program for one set of shapes, and ``run_sizes.Size`` in a runtime-sized one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import TypeAlias, cast

import onnx_ir as ir

from smelt.ir.symbolic_dims.dims import is_symbolic, symbols_of
from smelt.operators.elementwise import ELEMENTWISE
from smelt.program.instruction import Dim, Instruction, Program
from smelt.program.run_rows import count_rows
from smelt.program.run_sizes import Size, Undecided, highest, lowest, same

Sizes: TypeAlias = dict[str, "int | Size"]
Rule: TypeAlias = Callable[[Program, Instruction], Sizes]


def computed_sizes(program: Program, instruction: Instruction) -> Sizes:
    """Return the sizes, by symbol, of the symbolic dims of results.

    Empty if results have no symbolic dim, or if the operator has no rule. The rule leaves out a
    symbol whose size depends on an operand's symbolic dim.
    """
    rule = _rule(instruction)
    shapes = [program.slots[slot].shape for slot in instruction.outputs if slot >= 0]
    return rule(program, instruction) if rule is not None and any(map(is_open, shapes)) else {}


def computed_symbols(program: Program, instruction: Instruction) -> frozenset[str]:
    """Return the symbols that ``computed_sizes`` will have as keys once the sizes of operands are
    known."""
    after = program.slots[instruction.outputs[0]].shape
    unknown = [str(dim) for dim in after if is_symbol(dim)]
    if _rule(instruction) is None:
        return frozenset()
    if instruction.op == "Reshape":  # computes one size, if no other depends on it
        expressions = [dim for dim in after if not isinstance(dim, int) and str(dim) not in unknown]
        if len(unknown) > 1 or any(symbols_of(dim) & set(unknown) for dim in expressions):
            return frozenset()
    return frozenset(unknown)


def _rule(instruction: Instruction) -> Rule | None:
    """Return the function that computes the result sizes of ``instruction``, or None."""
    if instruction.op == "Expand" and "against" not in instruction.attributes:
        return None
    return _broadcast if instruction.op in ELEMENTWISE else _RULES.get(instruction.op)


def _reshaped(program: Program, instruction: Instruction) -> Sizes:
    """Return the one unknown result size of a Reshape: the element count divided by the other
    sizes."""
    before, after = (program.slots[n] for n in (instruction.inputs[0], instruction.outputs[0]))
    unknown = [dim for dim in after.shape if is_symbolic(dim)]
    if len(unknown) != 1 or not is_symbol(unknown[0]) or is_open(before.shape):
        return {}
    known = [cast("int | Size", dim) for dim in after.shape if dim is not unknown[0]]
    try:
        return {str(unknown[0]): product(before.shape) // product(known)}
    except (Undecided, ZeroDivisionError):
        return {}


def _sliced(program: Program, instruction: Instruction) -> Sizes:
    """Return the number of rows that a Slice takes, where shape inference has no expression for
    it."""
    before, after = (program.slots[n] for n in (instruction.inputs[0], instruction.outputs[0]))
    cuts = zip(*(instruction.ints(name) for name in ("starts", "ends", "steps")), strict=True)
    sizes: Sizes = {}
    for axis, cut in zip(instruction.ints("axes"), cuts, strict=True):
        size, dim = before.shape[axis], after.shape[axis]
        if is_symbol(dim) and not isinstance(size, ir.SymbolicDim):
            sizes[str(dim)] = count_rows(size, cut)
    return sizes


def _broadcast(program: Program, instruction: Instruction) -> Sizes:
    """Return the sizes that operands of an elementwise operator broadcast to."""
    shapes = [program.slots[slot].shape for slot in instruction.inputs if slot >= 0]
    after = program.slots[instruction.outputs[0]].shape
    return _broadcast_sizes(shapes, after)


def _expanded(program: Program, instruction: Instruction) -> Sizes:
    """Return the sizes that an operand of Expand and the shapes ``against`` broadcast to.

    ``against`` holds several shapes in sequence, each with the rank of the result.
    """
    before, after = (
        program.slots[n].shape for n in (instruction.inputs[0], instruction.outputs[0])
    )
    against = cast("tuple[Dim, ...]", instruction.attributes["against"])
    rank = len(after)
    others = [against[i : i + rank] for i in range(0, len(against), max(rank, 1))]
    return _broadcast_sizes([before, *others], after)


def _broadcast_sizes(shapes: Sequence[Sequence[Dim]], after: Sequence[Dim]) -> Sizes:
    """Return the broadcast sizes of ``shapes`` by the symbols of ``after``."""
    sizes: Sizes = {}
    backwards = zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1)
    for dims, dim in zip(backwards, reversed(after), strict=False):
        if is_symbol(dim) and not is_open(dims):
            size = cast("int | Size", dims[0])
            for other in dims[1:]:
                size = broadcast_size(size, cast("int | Size", other))
            sizes[str(dim)] = size
    return sizes


_RULES: Mapping[str, Rule] = {"Reshape": _reshaped, "Slice": _sliced, "Expand": _expanded}


def broadcast_size(a: int | Size, b: int | Size) -> int | Size:
    """Return the broadcast of two sizes, given that they are equal or one of them is 1."""
    if same(a, b) or same(b, 1):
        return a
    if not isinstance(a, Size):
        return b if a == 1 else a
    if lowest(a) > 1:
        return a
    if not isinstance(b, Size) or lowest(b) > 1:
        return b
    ends = (min(lowest(a), lowest(b)), max(highest(a), highest(b)))
    return Size.named(f"({a} == 1 ? {b} : {a})", *ends)


def is_symbol(dim: object) -> bool:
    """True if ``dim`` is a single symbol."""
    return is_symbolic(dim) and symbols_of(dim) == frozenset([dim.value])


def is_open(shape: Sequence[object]) -> bool:
    """True if a dim of ``shape`` is symbolic."""
    return any(is_symbolic(dim) for dim in shape)


def product(shape: Sequence[object]) -> int | Size:
    """Return the number of elements of a tensor whose sizes are known."""
    total: int | Size = 1
    for dim in shape:
        total = total * cast("int | Size", dim)
    return total
