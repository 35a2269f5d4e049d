"""Binds the symbolic dims of a Program to numbers, from the shapes of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import onnx_ir as ir

from smelt.errors import ErrorList, InvalidModel, Unsupported, UsageError
from smelt.ir.symbolic_dims.dims import is_symbolic, names_of, size_of, symbols_of
from smelt.ir.symbolic_dims.solved_dims import misfit_of, solve, solvers
from smelt.program.computed_sizes import computed_sizes, computed_symbols, is_open
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import DYNAMIC, AttributeValue, Body, Dim, Program

CHECKED = ("Reshape", "NonZero", "Compress", "Unique", "NonMaxSuppression", "Loop", *DYNAMIC)
"""Operators whose results may be assumed to have the declared sizes."""


def is_static(program: Program) -> bool:
    """True if no slot has a symbolic dim, including those of bodies."""
    own_are_static = all(isinstance(dim, int) for slot in program.slots for dim in slot.shape)
    return own_are_static and all(is_static(body.program) for body in program.bodies)


def bind_declared(program: Program, outputs: Sequence[Sequence[Dim] | None]) -> None:
    """Bind sizes that no input determines to the declared sizes of the model's ``outputs``.

    Only for results of a Reshape, whose elements are counted here, or of an instruction that checks
    its sizes at run time: other results would be cut to the declared size, or read beyond their
    end. Raises InvalidModel E317 if a Reshape has another number of elements than declared.
    """
    input_symbols = {
        name for n in program.inputs for dim in program.slots[n].shape for name in names_of(dim)
    }
    writers = _writers(program)
    sizes: dict[str, int] = {}
    for number, dims in zip(program.outputs, outputs, strict=True):
        shape = program.slots[number].shape
        if dims is None or len(dims) != len(shape):
            continue
        for dim, size in zip(shape, dims, strict=True):
            is_unbound = is_symbolic(dim) and _is_symbol(dim) and dim.value not in input_symbols
            if is_unbound and isinstance(size, int) and writers.get(str(dim)) in CHECKED:
                sizes.setdefault(str(dim), size)
    if sizes:
        _bind(program, sizes)
        _check_counts(program)


def _writers(program: Program) -> dict[str, str]:
    """Return, by symbol, the operator of the first instruction in whose result the symbol
    occurs."""
    writers: dict[str, str] = {}
    for instruction in program.instructions:
        for number in instruction.outputs:
            for name in {name for dim in program.slots[number].shape for name in names_of(dim)}:
                writers.setdefault(name, instruction.op)
    return writers


def _check_counts(program: Program) -> None:
    """Raise InvalidModel E317 for a Reshape between shapes of different element counts."""
    for instruction in program.instructions:
        if instruction.op != "Reshape":
            continue
        before, after = (program.slots[n] for n in (instruction.inputs[0], instruction.outputs[0]))
        known = all(isinstance(dim, int) for dim in (*before.shape, *after.shape))
        if known and before.size != after.size:
            raise InvalidModel(
                "E317",
                f"{before.size} elements cannot have the declared shape {list(after.shape)}",
                at=f"value {after.name!r}, node {instruction.origin!r}",
                why="a Reshape keeps the number of elements",
                fix="declare the output with the sizes that it has",
            )


def _bind(program: Program, sizes: Mapping[str, int]) -> None:
    """Replace symbols by ``sizes`` in the slots of ``program`` and of its bodies."""
    program.slots[:] = [
        replace(slot, shape=tuple(size_of(dim, sizes) for dim in slot.shape))
        for slot in program.slots
    ]
    for body in program.bodies:
        _bind(body.program, sizes)


def check_sizes_known(program: Program, advice: str = "", *, is_final: bool = False) -> None:
    """Raise E411 for each size that does not follow from the shapes of the inputs.

    An error names the first value with that size, because the others derive from it. ``advice``
    says how to bind the inputs. ``is_final``: ``specialize`` computes no further sizes.
    """
    dims = [dim for slot in program.inputs for dim in program.slots[slot].shape]
    bound: set[str | None] = {dim.value for dim in dims if is_symbolic(dim)} | {*solvers(dims)}
    errors = unknown_sizes(program, bound, advice, is_final)
    if errors:
        raise ErrorList(errors)


def unknown_sizes(
    program: Program, bound: set[str | None], advice: str = "", is_final: bool = False
) -> list[Unsupported]:
    """Return E411 for each size that does not follow from ``bound``, to which computed sizes are
    added."""
    errors = []
    for instruction in program.instructions:
        if not is_final:
            bound |= computed_symbols(program, instruction)
        body_inputs = [
            body.program.slots[n] for body in instruction.bodies for n in body.program.inputs
        ]
        for slot in (*(program.slots[number] for number in instruction.outputs), *body_inputs):
            for dim in slot.shape:
                if not _is_determined(dim, bound):
                    errors.append(_unknown_size(slot.name, dim, instruction.origin, advice))
                    bound |= symbols_of(dim)
        for body in instruction.bodies:
            errors += unknown_sizes(body.program, bound, advice, is_final)
    return errors


def _is_determined(dim: Dim, bound: set[str | None]) -> bool:
    """True if ``dim`` is a number or follows from the symbols ``bound``."""
    if not is_symbolic(dim):
        return True
    return dim.value is not None and (dim.value in bound or symbols_of(dim) <= bound)


def _unknown_size(name: str, dim: Dim, origin: str, advice: str) -> Unsupported:
    """Return the error E411 for a size of ``name`` that is unknown before a run."""
    return Unsupported(
        "E411",
        f"the size {dim} of {name!r} is not known before the model runs",
        at=f"node {origin!r}",
        why="memory is planned before a run, from the shapes of the inputs alone",
        fix=advice or "fix the shape in the model, or use the target 'onnx'",
    )


def specialize(program: Program, shapes: Sequence[tuple[int, ...]]) -> Program:
    """Return ``program`` for inputs of exactly these ``shapes``; its slots are new.

    Raises UsageError E670 if the shapes do not fit the inputs.
    """
    slots = [program.slots[number] for number in program.inputs]
    for slot, shape in zip(slots, shapes, strict=True):
        if len(shape) != len(slot.shape):
            raise misfit(slot.name, shape, slot.shape)
    dims = [dim for slot in slots for dim in slot.shape]
    sizes = solve(dims, [size for shape in shapes for size in shape])
    for slot, shape in zip(slots, shapes, strict=True):
        why = misfit_of(slot.shape, shape, sizes)
        if why:
            raise misfit(slot.name, shape, slot.shape, why)
    static = _with_sizes(program, sizes)
    for number, shape in zip(program.inputs, shapes, strict=True):
        if static.slots[number].shape != shape:
            raise misfit(static.slots[number].name, shape, program.slots[number].shape)
    return static


def _with_sizes(program: Program, input_sizes: Mapping[str, int]) -> Program:
    """Return ``program`` with all sizes computed from the inputs' sizes; raises UsageError E670 for
    an unknown one."""
    sizes, slots = dict(input_sizes), list(program.slots)
    static = replace(program, slots=slots, instructions=[])
    for number, slot in enumerate(slots):
        if any(type(dim) is not int or dim < 0 for dim in slot.shape):
            slots[number] = replace(slot, shape=tuple(_evaluate(dim, sizes) for dim in slot.shape))
    for instruction in program.instructions:
        numbers = {name: _numeric(value, sizes) for name, value in instruction.attributes.items()}
        step = replace(instruction, attributes=numbers)
        static.instructions.append(step)
        if any(is_open(slots[number].shape) for number in instruction.outputs if number >= 0):
            sizes = cast("dict[str, int]", computed_sizes(static, step)) | sizes
            for number in instruction.outputs:
                known = tuple(_evaluate(dim, sizes) for dim in slots[number].shape)
                slots[number] = replace(slots[number], shape=known)
        step.bodies = tuple(Body(_with_sizes(b.program, sizes)) for b in instruction.bodies)
    for slot in slots:
        for dim in slot.shape:
            if is_symbolic(dim):
                raise _invalid_size(dim, sizes)
    return static


def _numeric(value: AttributeValue | DotDims, sizes: Mapping[str, int]) -> AttributeValue | DotDims:
    """Return an attribute value with numbers in place of symbolic dims."""
    if not isinstance(value, tuple) or not any(isinstance(item, ir.SymbolicDim) for item in value):
        return value
    return tuple(
        size_of(item, sizes) if isinstance(item, ir.SymbolicDim) else int(item) for item in value
    )


def _is_symbol(dim: ir.SymbolicDim) -> bool:
    """True if ``dim`` is a single symbol, or an expression without symbols."""
    return symbols_of(dim) <= {dim.value} or not symbols_of(dim)


def _evaluate(dim: Dim, sizes: Mapping[str, int]) -> Dim:
    """Return the size of ``dim``, or ``dim`` itself while ``sizes`` do not determine it."""
    size = dim if isinstance(dim, int) else size_of(dim, sizes)
    if isinstance(size, int) and size < 0:
        raise _invalid_size(dim, sizes)
    return size


def _invalid_size(dim: Dim, sizes: Mapping[str, int]) -> UsageError:
    """Return the error E670 for ``dim``, which is unknown or negative for ``sizes``."""
    return UsageError(
        "E670",
        f"{dim} is not a size",
        why=f"the sizes of the inputs are {dict(sorted(sizes.items()))}",
        fix="give inputs that fit the constraints of the model",
    )


def misfit(
    name: str,
    shape: Sequence[int],
    expected: Sequence[Dim],
    why: str = "equal names stand for equal sizes, and numbers are fixed",
) -> UsageError:
    """Return the error E670 for an input whose shape differs from ``expected``."""
    dims = ", ".join(str(dim) for dim in expected)
    return UsageError(
        "E670",
        f"input {name!r} of shape {list(shape)} does not fit [{dims}]",
        why=why,
        fix="give an array of that shape",
    )
