"""Resolves the symbolic dims of a Program to run-time sizes.

Some sizes come with the inputs, within declared bounds. Others are data-dependent: operators
compute them, and the operands bound them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, cast

import onnx_ir as ir

from smelt.errors import Unsupported
from smelt.ir.symbolic_dims.dims import symbols_of
from smelt.ir.symbolic_dims.solved_dims import solvers
from smelt.program.carried_sizes import carried_sizes
from smelt.program.computed_sizes import Sizes, computed_sizes, is_open, is_symbol
from smelt.program.instruction import Dim, Instruction, Program, RunSize
from smelt.program.monomials import Bounds
from smelt.program.run_sizes import Size, highest
from smelt.program.size_expressions import number_in, size_in

Capacity: TypeAlias = Callable[[Program, Instruction, int, int], "int | None"]
"""Returns an upper bound of a result dim, by output position and axis; None if there is none."""


def resolve_sizes(
    program: Program,
    bounds: Mapping[str, Bounds],
    declared: Sequence[Sequence[Dim] | None],
    capacities: Mapping[str, Capacity],
) -> None:
    """Replace every symbol with known bounds by a run-time size, in place.

    ``bounds`` are by symbol of the model, ``declared`` are the declared shapes of its outputs, and
    ``capacities`` bound the data-dependent sizes of operators. A symbol stays if it cannot be
    bounded before a run. Raises Unsupported E411 for an input whose sizes do not determine its
    symbols.
    """
    output_shapes = [program.slots[number].shape for number in program.outputs]
    input_sizes: dict[str, RunSize] = {}
    for name in solvers(dim for number in program.inputs for dim in program.slots[number].shape):
        if name in bounds:
            input_sizes[name] = RunSize(name, Size.named(f"dim{len(input_sizes)}", *bounds[name]))
    sizes: Sizes = {name: run_size.size for name, run_size in input_sizes.items()}
    _replace(program, sizes)
    _check_inputs(program)
    declared_names = _declared_names(program, declared)
    known = Known(sizes, bounds, declared_names, capacities, len(input_sizes))
    _resolve(program, known)
    sizes = known.sizes
    _replace(program, sizes)
    program.input_sizes = tuple(input_sizes.values())
    symbols = [name for shape in output_shapes for dim in shape for name in sorted(symbols_of(dim))]
    unknown = [name for name in dict.fromkeys(symbols) if name not in input_sizes]
    program.returned_sizes = tuple(
        RunSize(declared_names.get(name, name), size, name)
        for name in unknown
        if isinstance(size := sizes.get(name), Size)
    )


def _check_inputs(program: Program) -> None:
    """Raise Unsupported E411 for an input dim whose symbols cannot be solved from its size."""
    for number in program.inputs:
        slot = program.slots[number]
        for dim in slot.shape:
            if isinstance(dim, ir.SymbolicDim):
                raise Unsupported(
                    "E411",
                    f"the size {dim} of input {slot.name!r} does not determine its symbols",
                    why="smelt can solve only dims that are linear in one unknown symbol, such "
                    "as 2*S or S + 1",
                    fix="give that dim a name of its own, or bind its symbols to one size each",
                )


def _declared_names(program: Program, declared: Sequence[Sequence[Dim] | None]) -> dict[str, str]:
    """Return the declared name of each symbol in the shape of an output."""
    names: dict[str, str] = {}
    for number, dims in zip(program.outputs, declared, strict=True):
        shape = program.slots[number].shape
        for dim, name in zip(shape, dims or (), strict=False):
            if is_symbol(dim) and isinstance(name, ir.SymbolicDim) and name.value is not None:
                names.setdefault(str(dim), name.value)
    return names


@dataclass
class Known:
    """Facts about sizes during a walk over a program; ``sizes`` grow, by symbol."""

    sizes: Sizes
    bounds: Mapping[str, Bounds]
    declared_names: Mapping[str, str]
    capacities: Mapping[str, Capacity]
    count: int

    def name(self, symbol: str, low: int, high: int) -> RunSize:
        """Return a new run-time size for ``symbol``, and add it to ``sizes``."""
        size = Size.named(f"dim{self.count}", min(low, high), high)
        self.count += 1
        self.sizes = {**self.sizes, symbol: size}
        return RunSize(self.declared_names.get(symbol, symbol), size, symbol)

    def declared(self, symbol: str) -> Bounds | None:
        """Return the bounds of ``symbol`` that the model or its caller declared, or None."""
        return self.bounds.get(self.declared_names.get(symbol, symbol))


def _resolve(program: Program, known: Known) -> None:
    """Resolve the sizes of ``program``, whose input sizes are resolved, and of its bodies."""
    data_dependent: list[RunSize] = []
    for instruction in program.instructions:
        instruction.attributes = {
            name: _with_sizes(value, known.sizes) for name, value in instruction.attributes.items()
        }
        outer_sizes = known.sizes
        for body in instruction.bodies:
            if instruction.op == "Loop":
                bounds = carried_sizes(
                    program, instruction, known.sizes, known.declared, partial(_trial, known)
                )
                body.program.loop_sizes = tuple(
                    known.name(name, *interval) for name, interval in bounds.items()
                )
            _replace(body.program, known.sizes)
            _resolve(body.program, known)
            _replace(body.program, known.sizes)
            known.sizes = outer_sizes  # sizes of a body are known only inside of it
        data_dependent += _data_dependent_sizes(program, instruction, known)
        known.sizes = computed_sizes(program, instruction) | known.sizes
        _replace(program, known.sizes, instruction)
    program.data_dependent_sizes = tuple(data_dependent)


def _trial(known: Known, body: Program, bounds: Mapping[str, Bounds]) -> Program:
    """Return a copy of ``body``, resolved as if the sizes of its states were within ``bounds``."""
    copy, trial_known = body.copy(), replace(known)
    for name, interval in bounds.items():
        trial_known.name(name, *interval)
    _replace(copy, trial_known.sizes)
    _resolve(copy, trial_known)
    _replace(copy, trial_known.sizes)
    return copy


def _data_dependent_sizes(
    program: Program, instruction: Instruction, known: Known
) -> list[RunSize]:
    """Return the data-dependent sizes that ``instruction`` computes."""
    capacity = known.capacities.get(instruction.op)
    if capacity is None:
        return []
    new: list[RunSize] = []
    shapes = [program.slots[slot].shape if slot >= 0 else () for slot in instruction.outputs]
    positions = [
        (position, axis) for position, shape in enumerate(shapes) for axis in range(len(shape))
    ]
    for position, axis in positions:
        dim = shapes[position][axis]
        if not is_symbol(dim) or str(dim) in known.sizes:
            continue
        declared = known.declared(str(dim))
        try:
            maximum = capacity(program, instruction, position, axis)
        except ValueError:  # operands of unknown sizes give no bound
            maximum = None
        if maximum is None and declared is None:
            continue
        low, high = declared or (0, maximum or 0)
        new.append(known.name(str(dim), low, high if maximum is None else min(high, maximum)))
    return new


def _replace(program: Program, sizes: Sizes, instruction: Instruction | None = None) -> None:
    """Replace symbols of known size in all slots of ``program``, or in the results of
    ``instruction``."""
    slots = instruction.outputs if instruction is not None else range(len(program.slots))
    for number in slots:
        if number >= 0 and is_open(program.slots[number].shape):
            slot = program.slots[number]
            shape = tuple(cast(Dim, size_in(dim, sizes)) for dim in slot.shape)
            program.slots[number] = replace(slot, shape=shape)
    for body in program.bodies if instruction is None else ():
        _replace(body.program, sizes)


def with_largest_sizes(program: Program) -> Program:
    """Return ``program`` with each run-time size replaced by its upper bound, for reports."""
    slots = [
        replace(slot, shape=tuple(highest(size) for size in slot.sizes)) for slot in program.slots
    ]
    return replace(program, slots=slots)


def _with_sizes(value: Any, sizes: Sizes) -> Any:
    """Return an attribute value with run-time sizes in place of symbols."""
    if isinstance(value, tuple) and is_open(value):
        return tuple(number_in(item, sizes) for item in value)
    return value
