"""If and Loop: each body is a C function over pointers, like the whole model.

A body's arena lies in the instruction's scratch space. An iteration writes new states into scratch
space. They are then copied over the old ones, because a body may read a state until its end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from smelt.native.emit.run_time import returned_sizes
from smelt.native.kernels.instance import Instance, static
from smelt.native.kernels.kernel import ANY, KernelContext, as_bytes, kernel
from smelt.native.kernels.operand import Operand
from smelt.native.types import C_TYPES
from smelt.program.instruction import Body, Slot
from smelt.program.memory import ALIGNMENT
from smelt.program.run_sizes import highest, lowest, same
from smelt.program.storage import Needs

BYTE = C_TYPES[ir.DataType.UINT8]

VaryingSize: TypeAlias = tuple[int, int, int, int]
"""A state size that varies: variable, initial size, next size, size in the result."""


def _aligned_bytes(size: int) -> int:
    """Return ``size`` rounded up to whole alignment units."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def _arena_bytes(bodies: Sequence[Body]) -> int:
    """Return the largest arena of the bodies, 0 without memory plans."""
    return max((body.plan.arena_bytes for body in bodies if body.plan is not None), default=0)


def _branch_needs(instance: Instance) -> Needs:
    """Return the scratch space of an If: the arena of either branch."""
    return Needs(workspace=_arena_bytes(instance.instruction.bodies))


def _refuse(instance: Instance) -> str | None:
    """Return why an operand is refused: a row has no address if its elements share bytes."""
    operands = (*instance.instruction.inputs, *instance.instruction.outputs)
    slots = [instance.program.slots[slot] for slot in operands if slot >= 0]
    sub_byte = [slot for slot in slots if int(slot.dtype.bitwidth) < 8]
    return f"elements of {sub_byte[0].dtype.name.lower()}, which share bytes" if sub_byte else None


def _pointers(cx: KernelContext, name: str, values: Sequence[str], *, read: bool) -> str:
    """Declare the array ``name`` of the pointers ``values``, and return its name."""
    kind = "const void *const" if read else "void *const"
    listed = ", ".join(values) or "0"
    cx.body.line(f"{kind} {name}[] = {{{listed}}};")
    return name


def _call(
    cx: KernelContext, branch_number: int, inputs: Sequence[str], outputs: Sequence[str]
) -> None:
    """Write the call of a body function; a body that fails ends the run."""
    memory = "0"
    if _arena_bytes(cx.instruction.bodies):
        memory = f"{cx.scratch(BYTE)} + {_arena_offset(cx)}"
    read = _pointers(cx, "read", inputs, read=True)
    written = _pointers(cx, "written", outputs, read=False)
    body = cx.instruction.bodies[branch_number].program
    extra_arguments = cx.all_extra_arguments() + "".join(
        f", {each.size}" for each in body.loop_sizes
    )
    result_sizes = returned_sizes(body)
    for size in result_sizes:
        cx.body.line(f"ptrdiff_t {size};")
    extra_arguments += "".join(f", &{size}" for size in result_sizes)
    call = f"{cx.body_names[branch_number]}({read}, {written}, {memory}{extra_arguments})"
    if not cx.body_fails[branch_number]:
        cx.body.line(f"{call};")
        return
    cx.may_fail(cx.body_fails[branch_number])
    cx.body.line(f"if ({call} != 0)")
    cx.body.line("    return 1;")


@kernel("If", kinds=ANY, needs=_branch_needs, refuse=_refuse)
def branch(cx: KernelContext) -> None:
    """Write the calls of both bodies, and define the result sizes in which the branches differ."""
    differing = _sizes_of_branches(cx)
    for number, _ in enumerate(differing):
        cx.body.line(f"ptrdiff_t found{number};")
    split = 1 + cx.int("split")
    outputs = [cx.output(i).name for i in range(len(cx.instruction.outputs))]
    captures = (range(1, split), range(split, len(cx.instruction.inputs)))
    for branch_number, head in enumerate((f"if ({cx.input(0).name}[0])", "else")):
        with cx.body.block(head):
            _call(cx, branch_number, [cx.input(i).name for i in captures[branch_number]], outputs)
            for number, (_, branch_sizes) in enumerate(differing):
                cx.body.line(f"found{number} = {branch_sizes[branch_number]};")
    for number, (size, _) in enumerate(differing):
        cx.define_size(size, f"found{number}")


def _sizes_of_branches(cx: KernelContext) -> list[tuple[int, tuple[int, ...]]]:
    """Return each result size in which the branches differ, with its value in each branch."""
    bodies = [body.program for body in cx.instruction.bodies]
    differing = []
    for position in range(len(cx.instruction.outputs)):
        shapes = [static(body.slots[body.outputs[position]]) for body in bodies]
        for size, *each in zip(cx.output_shape(position), *shapes, strict=True):
            if not same(*each):
                differing.append((size, tuple(each)))
    return differing


@dataclass(frozen=True)
class _State:
    """A loop state: the C name of its operand, the bytes to copy at first and per iteration."""

    name: str
    initial_bytes: int
    bytes_written: int


def _condition_count(instance: Instance) -> int:
    """Return 1 if a condition controls the loop, else 0: the outputs of the body before its states.

    Twice as many inputs precede the states: the iteration number and the condition.
    """
    return int(bool(instance.attributes["counted"]))


def _slots_of_states(instance: Instance) -> Iterator[tuple[Slot, Slot]]:
    """Yield two slots of the body for each state: the one it reads, and the one it writes."""
    body, conditions = instance.instruction.bodies[0].program, _condition_count(instance)
    for state in range(instance.int("states")):
        yield (
            body.slots[body.inputs[2 * conditions + state]],
            body.slots[body.outputs[conditions + state]],
        )


def _arena_offset(instance: Instance) -> int:
    """Return the offset of the body's arena in scratch space: it lies after all new states."""
    if instance.instruction.op != "Loop":
        return 0
    return sum(_aligned_bytes(state.most_bytes) for _, state in _slots_of_states(instance))


def _loop_needs(instance: Instance) -> Needs:
    """Return the scratch space of a Loop: new states, then the body's arena."""
    return Needs(workspace=_arena_offset(instance) + _arena_bytes(instance.instruction.bodies))


def _states(cx: KernelContext) -> list[_State]:
    """Return the states; an initial value that has another shape than later ones is never read."""
    varying_sizes = {str(each.size) for each in cx.instruction.bodies[0].program.loop_sizes}
    states = []
    for i, (read, written) in enumerate(_slots_of_states(cx)):
        pairs = zip(read.sizes, written.sizes, strict=False)
        same_sizes = all(str(x) in varying_sizes or same(x, y) for x, y in pairs)
        same_sizes = same_sizes and len(read.shape) == len(written.shape)
        initial = cx.program.slots[cx.instruction.inputs[2 + i]]
        initial_bytes = initial.nbytes if same_sizes else 0
        states.append(_State(cx.output(i).name, initial_bytes, written.nbytes))
    return states


def _varying_sizes(cx: KernelContext) -> list[VaryingSize]:
    """Return the state sizes that vary between iterations, each once if several states have it."""
    body = cx.instruction.bodies[0].program
    loop_sizes, varying = {str(each.size) for each in body.loop_sizes}, {}
    for i, (read, written) in enumerate(_slots_of_states(cx)):
        initial, result = (
            cx.program.slots[slot].sizes
            for slot in (cx.instruction.inputs[2 + i], cx.instruction.outputs[i])
        )
        for axis, size in enumerate(read.sizes):
            if str(size) in loop_sizes:
                varying[str(size)] = (size, initial[axis], written.sizes[axis], result[axis])
    return list(varying.values())


@contextmanager
def _iterations(cx: KernelContext, trip: str, has_condition: bool, most: object) -> Iterator[None]:
    """Write the loop over iterations ``i``; the caller writes its body.

    With ``has_condition``, the loop ends when ``going`` is 0. Unless ``most`` is None, ``done``
    counts iterations, and a run with more than ``most`` fails.
    """
    body = cx.body
    if has_condition:
        body.line(f"uint8_t going = {f'{cx.input(1).name}[0]' if cx.slot(1) is not None else '1'};")
    if most is not None:
        body.line("int64_t done = 0;")
    test = " && going" if has_condition else ""
    with body.block(f"for (int64_t i = 0; i < {trip}{test}; ++i)"):
        if most is not None:
            cx.may_fail()
            body.line(f"if (done++ == {most})")
            body.line("    return 1;")
        if has_condition:
            body.line("const uint8_t before = going;")
        yield


@kernel("Loop", kinds=ANY, needs=_loop_needs, refuse=_refuse)
def loop(cx: KernelContext) -> None:
    """Write the loop. Outputs contain the states, and each iteration gets pointers to its rows.

    ```
    memcpy(y0, x2, 16);
    for (int64_t i = 0; i < 8; ++i) {
        const void *const read[] = {y0, x3 + i * 4};
        LoopBody_2(read, written, scratch + 64);
        memcpy(y0, scratch + 0, 16);
    ```
    """
    states, sizes = _states(cx), _varying_sizes(cx)
    _begin(cx, states, sizes)
    reads, writes, count = cx.ints("reads"), cx.ints("writes"), len(states)
    rows = [cx.input(2 + count + i) for i in range(len(reads))]
    results = [cx.output(count + i) for i in range(len(writes))]
    captures = range(2 + count + len(rows), len(cx.instruction.inputs))
    trip, has_condition = _trip_count(cx, rows), bool(cx.attributes["counted"])
    counts_iterations = bool(cx.attributes["finds"])
    inputs, outputs = (["&i", "&before"], ["&going"]) if has_condition else ([], [])
    with _iterations(
        cx, trip, has_condition, highest(results[0].shape[0]) if counts_iterations else None
    ):
        new_states = _state_addresses(cx, states)
        inputs += [state.name for state in states]
        inputs += [_row(row, back, trip) for row, back in zip(rows, reads, strict=True)]
        inputs += [cx.input(i).name for i in captures]
        outputs += new_states
        outputs += [_row(row, back, trip) for row, back in zip(results, writes, strict=True)]
        _call(cx, 0, inputs, outputs)
        _check_sizes(cx, sizes)
        for state, new_state in zip(states, new_states, strict=True):
            _copy(cx, state.name, new_state, state.bytes_written)
        for number, (size, *_) in enumerate(sizes):
            cx.body.line(f"{size} = next{number};")
    if counts_iterations:
        cx.define_size(results[0].shape[0], "done")
    for size, _, _, result in sizes:
        cx.define_size(result, str(size))


def _begin(cx: KernelContext, states: Sequence[_State], sizes: Sequence[VaryingSize]) -> None:
    """Write the state sizes that vary, and the copy of the initial states to the outputs."""
    for size, initial, _, _ in sizes:
        cx.body.line(f"ptrdiff_t {size} = {initial};")
    for i, state in enumerate(states):
        if highest(state.initial_bytes):
            _copy(cx, state.name, cx.input(2 + i).name, state.initial_bytes)


def _copy(cx: KernelContext, to: str, source: str, size: int) -> None:
    """Write a memcpy of ``size`` bytes, unless that is 0 in every run."""
    if highest(size):
        cx.body.line(f"memcpy({to}, {source}, {as_bytes(size)});")


def _check_sizes(cx: KernelContext, sizes: Sequence[VaryingSize]) -> None:
    """Write checks that end a run if a new state exceeds its bounds, before it is copied."""
    for number, (size, _, after, _) in enumerate(sizes):
        cx.may_fail()
        cx.body.line(f"const ptrdiff_t next{number} = {after};")
        cx.body.line(f"if (next{number} < {lowest(size)} || next{number} > {highest(size)})")
        cx.body.line("    return 1;")


def _state_addresses(cx: KernelContext, states: Sequence[_State]) -> list[str]:
    """Return the C address at which an iteration writes each new state."""
    addresses, offset = [], 0
    for state in states:
        size = highest(state.bytes_written)
        addresses.append(f"{cx.scratch(BYTE)} + {offset}" if size else state.name)
        offset += _aligned_bytes(size)
    return addresses


def _trip_count(cx: KernelContext, rows: Sequence[Operand]) -> str:
    """Return the maximum number of iterations, as C."""
    if cx.int("trip") >= 0:
        return str(cx.int("trip"))
    if rows:
        return str(rows[0].shape[0])
    return f"(int64_t){cx.input(0).name}[0]" if cx.slot(0) is not None else "INT64_MAX"


def _row(operand: Operand, is_backwards: int, trip: str) -> str:
    """Return the pointer to the row of iteration ``i``, as C; the last row first if backwards."""
    size = math.prod(operand.shape[1:])
    at = f"({trip} - 1 - i)" if is_backwards else "i"
    return f"{operand.name} + {at} * {size}"
