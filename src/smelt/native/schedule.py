"""Lower a selected graph to a scheduled Program with a kernel for every instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import onnx_ir as ir

from smelt.errors import ErrorList, Unsupported
from smelt.ir.bounds import bounds_of
from smelt.ir.shapes.declared import declared
from smelt.ir.symbolic_dims.size_constraints import constraints_of
from smelt.native.capacities import CAPACITIES
from smelt.native.computed import is_computed, is_computed_in_runs, refusal
from smelt.native.emit.run_time import in_order_of_sizes
from smelt.native.kernels import kernel_of
from smelt.native.kernels.dot_layout import is_product
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.quantized.fixed_point import use_fixed_point
from smelt.native.memory import allocate, needs_of
from smelt.native.operators import DOMAIN
from smelt.native.rewrite.fold_movement import fold_movement
from smelt.native.rewrite.fuse_elementwise import fuse_elementwise
from smelt.native.rewrite.fuse_epilogue import fuse_epilogues
from smelt.native.rewrite.storage_types import widen
from smelt.native.types import C_TYPES
from smelt.program.agreement import constraint_conditions, note_conditions
from smelt.program.instruction import Instruction, Program
from smelt.program.legality import check_program
from smelt.program.lower import lower, lower_alone
from smelt.program.open_broadcasts import insert_expands
from smelt.program.passes import (
    dead_code_elimination,
    dot_decomposer,
    dot_dimension_sorter,
    last_use,
    layout_composition,
    operand_layout,
    quantized_groups,
    quantized_lookups,
    transpose_folding,
)
from smelt.program.resolve_sizes import resolve_sizes
from smelt.program.schedule import schedule
from smelt.program.specialize import bind_declared, check_sizes_known, is_static

NO_BOUND = (
    "fix the size in the model, or bound it by its name in the shape of an output: "
    "--dim NAME=1..64; if no output has this size, add an output that has it"
)


def ordered(
    model: ir.Model, target: str, *, integers: bool = True, fixed_point: bool = False
) -> Program:
    """Return the program of ``model`` in the instruction order that needs the least memory.

    The other arguments and the errors are those of ``planned``.
    """
    program = lower(model, is_computed_in_runs(bounds_of(model.graph)))
    bind_declared(program, declared(model.graph))
    shapes = [program.slots[number].shape for number in program.outputs]
    if not is_static(program):
        insert_expands(program)
        resolve_sizes(program, bounds_of(model.graph), declared(model.graph), CAPACITIES)
        check_sizes_known(program, NO_BOUND, is_final=True)
        program.conditions = constraint_conditions(constraints_of(model), program.input_sizes)
    # The interface file gets the sizes that became known, and the model's names for the others.
    for value, number, named in zip(model.graph.outputs, program.outputs, shapes, strict=True):
        pairs = zip(program.slots[number].shape, named, strict=True)
        value.shape = ir.Shape([dim if isinstance(dim, int) else name for dim, name in pairs])
    groups = (fuse_elementwise,)
    return planned(program, target, (), groups, integers=integers, fixed_point=fixed_point)


def planned(
    program: Program,
    target: str,
    choices: Sequence[Callable[[Program], None]] = (),
    groups: Sequence[Callable[[Program], None]] = (),
    enough: int = 0,
    integers: bool = True,
    fixed_point: bool = False,
) -> Program:
    """Return ``program`` with the engine's kernels and in execution order; the argument is
    consumed.

    ``choices`` are program passes that replace operators by those with better kernels on this
    machine. ``groups`` are passes that fuse the instructions left after epilogues are fused. If the
    memory peak is below ``enough`` bytes, no better order is searched. ``integers``: compute groups
    of operators between quantized numbers in integers, else in floats. ``fixed_point``: requantize
    sums without floats. Types that C lacks, such as float16, keep their storage, but ``widen`` puts
    conversions to and from a C type around their kernels. Raises an ErrorList of all instructions
    without a kernel; ``target`` names the target in it.
    """
    note_conditions(program)
    fold_movement(program)
    if integers:
        use_integer_kernels(program)
    if fixed_point:
        use_fixed_point(program)
    widen(program)
    simplify(program)
    for choose in choices:
        choose(program)
    check(program, target)
    fuse_epilogues(program)
    for group in groups:
        group(program)
    return _scheduled_program(program, enough)


def use_integer_kernels(program: Program) -> None:
    """Replace groups of operators between quantized numbers by integer kernels, bodies included."""
    for body in program.bodies:
        use_integer_kernels(body.program)
    quantized_groups.run(program, is_computed, {f"{DOMAIN}::ConvRelu": "Conv"})
    quantized_lookups.run(program, is_computed)
    dead_code_elimination.run(program)


def check(program: Program, target: str) -> None:
    """Raise an ErrorList of all instructions without a kernel, innermost bodies first."""
    for body in program.bodies:
        check(body.program, target)
    check_program(program, target, C_TYPES.keys(), partial(refusal, program))


def _scheduled_program(program: Program, enough: int) -> Program:
    """Return ``program`` in execution order; ``enough`` is as in ``planned``.

    Bodies come first: the arena of a body is scratch space of the instruction that runs it.
    """
    for body in program.bodies:
        body.program = _scheduled_program(body.program, enough)
        body.plan = allocate(body.program)
    needs = partial(needs_of, program)
    program = in_order_of_sizes(program, schedule(program, needs, enough))
    last_use.run(program)
    return program


def computes(model: ir.Model, node: ir.Node) -> bool:
    """True if there are kernels for ``node``, or there may be once its sizes are known."""
    try:
        computes_node = is_computed_in_runs(bounds_of(model.graph))
        program = lower_alone(model, node, computes_node)
        if any("::" in step.op and kernel_of(step.op) is None for step in program.instructions):
            return False  # an operator of another domain without a lowering
        if not is_static(program) or any(slot.dtype not in C_TYPES for slot in program.slots):
            return True
        widen(program)
        simplify(program)
        for body in program.bodies:
            check(body.program, "c")
    except (Unsupported, ErrorList):
        return False
    return all(refusal(program, instruction) is None for instruction in program.instructions)


def simplify(program: Program) -> None:
    """Simplify transposes, layouts and products of ``program``, before kernels are chosen."""
    for body in program.bodies:
        simplify(body.program)
    layout_composition.run(program)
    transpose_folding.run(program, across_reshapes=True)
    dot_dimension_sorter.run(program, strided=True)
    operand_layout.run(program)
    dot_decomposer.run(program, keep=lambda dot: _is_product(program, dot))
    layout_composition.run(program)
    fold_movement(program)
    dead_code_elimination.run(program)


def _is_product(program: Program, dot: Instruction) -> bool:
    """True if a kernel multiplies the operands of ``dot`` in their layout."""
    typed = all(program.slots[slot].dtype in C_TYPES for slot in dot.inputs)
    return typed and is_product(Instance(program, dot))
