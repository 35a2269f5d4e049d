"""Give the symbolic dims of a Program the sizes that each run has of its own.

Some are given with the inputs, within bounds that were declared. Others are found out as a run
goes, by operators whose results are as large as the data say; they are bounded by the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, TypeAlias, cast

import onnx_ir as ir

from smelt.errors import Unsupported
from smelt.ir.dims import symbols_of
from smelt.ir.empty_dims import MORE, expression_from_zero
from smelt.program.computed_sizes import Sizes, computed_sizes, is_open, is_symbol, product
from smelt.program.instruction import Dim, Instruction, Program, RunSize
from smelt.program.run_sizes import (
    Bounds,
    Size,
    Undecided,
    ceil_div,
    highest,
    larger,
    lowest,
    smaller,
)

Capacity: TypeAlias = Callable[[Program, Instruction, int, int], "int | None"]
"""The most that a dim can be, by the place of its output and its axis; None if nothing tells."""


def settle(
    program: Program,
    bounds: Mapping[str, Bounds],
    declared: Sequence[Sequence[Dim] | None],
    capacities: Mapping[str, Capacity],
) -> None:
    """Replace every symbol of which the bounds are known, in place.

    ``bounds`` are by symbol of the model, ``declared`` the shapes that its outputs are declared
    with, and ``capacities`` those of operators that find sizes out. What stays symbolic follows
    from nothing that is known before a run. Raises Unsupported E411 for an input that no run can
    tell the sizes of.
    """
    returned = [program.slots[number].shape for number in program.outputs]
    given: dict[str, RunSize] = {}
    for number in program.inputs:
        for dim in program.slots[number].shape:
            name = str(dim)
            if name in bounds and name not in given:
                given[name] = RunSize(name, Size.named(f"dim{len(given)}", *bounds[name]))
    sizes: Sizes = {name: each.size for name, each in given.items()}
    _replace(program, sizes)
    _check_inputs(program)
    found: list[RunSize] = []
    told = _told(program, declared)
    for instruction in program.instructions:
        instruction.attributes = {
            name: _replaced(value, sizes) for name, value in instruction.attributes.items()
        }
        new = _found(program, instruction, bounds, told, capacities, len(sizes))
        sizes |= {each.symbol: each.size for each in new}
        found += new
        sizes = computed_sizes(program, instruction) | sizes
        _replace(program, sizes, instruction)
    _replace(program, sizes)
    program.given, program.found = tuple(given.values()), tuple(found)
    symbols = [name for shape in returned for dim in shape for name in sorted(symbols_of(dim))]
    unknown = [name for name in dict.fromkeys(symbols) if name not in given]
    program.told = tuple(
        RunSize(told.get(name, name), size, name)
        for name in unknown
        if isinstance(size := sizes.get(name), Size)
    )


def _check_inputs(program: Program) -> None:
    """Raise Unsupported E411 for an input with an expression in symbols that no input has alone."""
    for number in program.inputs:
        slot = program.slots[number]
        for dim in slot.shape:
            if isinstance(dim, ir.SymbolicDim):
                raise Unsupported(
                    "E411",
                    f"the size {dim} of input {slot.name!r} does not tell what it is made of",
                    why="no dim of an input is one of its symbols alone, so a run cannot solve it",
                    fix="give that dim a name of its own, or bind its symbols to one size each",
                )


def _told(program: Program, declared: Sequence[Sequence[Dim] | None]) -> dict[str, str]:
    """The declared name of each symbol that an output has."""
    names: dict[str, str] = {}
    for number, dims in zip(program.outputs, declared, strict=True):
        shape = program.slots[number].shape
        for dim, name in zip(shape, dims or (), strict=False):
            if is_symbol(dim) and isinstance(name, ir.SymbolicDim) and name.value is not None:
                names.setdefault(str(dim), name.value)
    return names


def _found(
    program: Program,
    instruction: Instruction,
    bounds: Mapping[str, Bounds],
    told: Mapping[str, str],
    capacities: Mapping[str, Capacity],
    count: int,
) -> list[RunSize]:
    """The sizes that ``instruction`` finds out."""
    capacity = capacities.get(instruction.op)
    if capacity is None:
        return []
    new: dict[str, RunSize] = {}
    shapes = [program.slots[slot].shape if slot >= 0 else () for slot in instruction.outputs]
    places = [(place, axis) for place, shape in enumerate(shapes) for axis in range(len(shape))]
    for place, axis in places:
        dim = shapes[place][axis]
        if not is_symbol(dim) or str(dim) in new:
            continue
        name = str(dim)
        declared = bounds.get(told.get(name, name))
        try:
            most = capacity(program, instruction, place, axis)
        except ValueError:  # an operand of open sizes tells no bound
            most = None
        if most is None and declared is None:
            continue
        low, high = declared or (0, most or 0)
        high = high if most is None else min(high, most)
        size = Size.named(f"dim{count + len(new)}", min(low, high), high)
        new[name] = RunSize(told.get(name, name), size, name)
    return list(new.values())


def _replace(program: Program, sizes: Sizes, only: Instruction | None = None) -> None:
    slots = only.outputs if only is not None else range(len(program.slots))
    for number in slots:
        if number >= 0 and is_open(program.slots[number].shape):
            slot = program.slots[number]
            shape = tuple(cast(Dim, size_in(dim, sizes)) for dim in slot.shape)
            program.slots[number] = replace(slot, shape=shape)
    for body in program.bodies if only is None else ():
        _replace(body.program, sizes)


def largest(program: Program) -> Program:
    """``program`` as it is in the largest run, for reports."""
    slots = [
        replace(slot, shape=tuple(highest(size) for size in slot.sizes)) for slot in program.slots
    ]
    return replace(program, slots=slots)


def _replaced(value: Any, sizes: Sizes) -> Any:
    """An attribute with the sizes of a run in place of symbols that it hangs on."""
    if isinstance(value, tuple) and is_open(value):
        return tuple(_number_in(item, sizes) for item in value)
    return value


def size_in(dim: Dim, sizes: Mapping[str, int | Size]) -> Dim | Size:
    """``dim`` with ``sizes`` in place of its symbols; itself if some are not known, or if it is no
    size in any run."""
    found = _number_in(dim, sizes)
    return dim if not isinstance(found, ir.SymbolicDim) and highest(found) < 0 else found


def _number_in(dim: Dim, sizes: Mapping[str, int | Size]) -> Dim | Size:
    """The same for any number of an attribute, such as the start -N of a Slice."""
    if not isinstance(dim, ir.SymbolicDim) or dim.value is None:
        return dim
    if dim.value in sizes:
        return sizes[dim.value]
    if not symbols_of(dim) <= sizes.keys():
        return dim
    try:
        found = _evaluate(*_read(dim, sizes))
    except Undecided:
        return dim
    return found if found is not None else dim


def _read(
    dim: ir.SymbolicDim, sizes: Mapping[str, int | Size]
) -> tuple[Any, Mapping[str, int | Size]]:
    """The expression of ``dim``, and the sizes of its symbols.

    SymPy takes each for 1 or more, so it has another one for a size that may be 0.
    """
    empty = [name for name in symbols_of(dim) if lowest(sizes[name]) == 0]
    more = {f"{name}{MORE}": sizes[name] + 1 for name in empty}
    return expression_from_zero(dim, empty), {**sizes, **more}


def _evaluate(expression: Any, sizes: Mapping[str, int | Size]) -> int | Size | None:
    """The size that a SymPy ``expression`` stands for; None if it has other functions."""
    import sympy  # type: ignore[import-untyped]

    if expression.is_Integer:
        return int(expression)
    if expression.is_Symbol:
        return sizes.get(expression.name)
    if isinstance(expression, sympy.floor | sympy.ceiling):
        over, under = sympy.fraction(sympy.together(expression.args[0]))
        parts = [_evaluate(each, sizes) for each in (over, under)]
        if parts[0] is None or parts[1] is None:
            return None
        if isinstance(expression, sympy.floor):
            return parts[0] // parts[1]
        return ceil_div(parts[0], parts[1]) if isinstance(parts[1], int) else None
    over, under = sympy.fraction(sympy.together(expression))
    if under != 1:
        a, b = _evaluate(over, sizes), _evaluate(under, sizes)
        return None if a is None or b is None else a // b
    operands = [_evaluate(each, sizes) for each in expression.args]
    known = [each for each in operands if each is not None]
    if len(known) < len(operands) or not known:
        return None
    return _apply(sympy, expression, known)


def _apply(sympy: Any, expression: Any, operands: list[int | Size]) -> int | Size | None:
    if expression.is_Add:
        total: int | Size = 0
        for each in operands:
            total = total + each
        return total
    if expression.is_Mul:
        return product(operands)
    if expression.is_Pow and isinstance(operands[1], int) and 0 <= operands[1] <= 8:
        return product([operands[0]] * operands[1])
    if isinstance(expression, sympy.Max | sympy.Min):
        return reduce(larger if isinstance(expression, sympy.Max) else smaller, operands)
    if isinstance(expression, sympy.Mod):
        return operands[0] % operands[1]
    return None
