"""If and Loop: each body is a C function over pointers, as the whole model is.

A body finds its own arena in the scratch space of the instruction. What an iteration leaves of a
state is written beside it and then copied over it, since a body may read a state to its end.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.native.kernels.instance import Instance, static
from smelt.native.kernels.kernel import ANY, KernelContext, as_bytes, kernel
from smelt.native.kernels.operand import Operand
from smelt.native.types import C_TYPES
from smelt.program.instruction import Body
from smelt.program.memory import ALIGNMENT
from smelt.program.run_sizes import highest, same
from smelt.program.storage import Needs

BYTE = C_TYPES[ir.DataType.UINT8]


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _arena_bytes(bodies: Sequence[Body]) -> int:
    return max((body.plan.arena_bytes for body in bodies if body.plan is not None), default=0)


def _branch_needs(instance: Instance) -> Needs:
    return Needs(workspace=_arena_bytes(instance.instruction.bodies))


def _nbytes(operand: Operand) -> int:
    return operand.size * operand.type.size


def _refuse(instance: Instance) -> str | None:
    """Why rows cannot be pointed at: elements of less than a byte have no address."""
    rows = (*instance.instruction.inputs, *instance.instruction.outputs)
    slots = [instance.program.slots[slot] for slot in rows if slot >= 0]
    packed = [slot for slot in slots if int(slot.dtype.bitwidth) < 8]
    return f"elements of {packed[0].dtype.name.lower()}, which share bytes" if packed else None


def _pointers(cx: KernelContext, name: str, values: Sequence[str], *, read: bool) -> str:
    """Declare the array ``name`` of pointers and return its name."""
    kind = "const void *const" if read else "void *const"
    listed = ", ".join(values) or "0"
    cx.body.line(f"{kind} {name}[] = {{{listed}}};")
    return name


def _call(cx: KernelContext, place: int, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    memory = "0"
    if _arena_bytes(cx.instruction.bodies):
        memory = f"{cx.scratch(BYTE)} + {_state_bytes(cx)}"
    read = _pointers(cx, "read", inputs, read=True)
    written = _pointers(cx, "written", outputs, read=False)
    call = f"{cx.body_names[place]}({read}, {written}, {memory}{cx.all_handed_on()})"
    if not cx.body_fails[place]:
        cx.body.line(f"{call};")
        return
    cx.may_fail(cx.body_fails[place])
    cx.body.line(f"if ({call} != 0)")
    cx.body.line("    return 1;")


@kernel("If", kinds=ANY, needs=_branch_needs, refuse=_refuse)
def branch(cx: KernelContext) -> None:
    """One of two bodies writes the outputs, and tells the sizes in which the other differs."""
    found = _sizes_of_branches(cx)
    for number, _ in enumerate(found):
        cx.body.line(f"ptrdiff_t found{number};")
    split = 1 + cx.int("split")
    outputs = [cx.output(i).name for i in range(len(cx.instruction.outputs))]
    ends = ((1, split), (split, len(cx.instruction.inputs)))
    for place, ((first, last), head) in enumerate(
        zip(ends, (f"if ({cx.input(0).name}[0])", "else"), strict=True)
    ):
        with cx.body.block(head):
            captured = [cx.input(i).name for i in range(first, last)]
            _call(cx, place, captured, outputs)
            for number, (_, told) in enumerate(found):
                cx.body.line(f"found{number} = {told[place]};")
    for number, (size, _) in enumerate(found):
        cx.settle(size, f"found{number}")


def _sizes_of_branches(cx: KernelContext) -> list[tuple[int, tuple[int, ...]]]:
    """Sizes of results in which the branches differ, and what each branch has for them."""
    bodies = [body.program for body in cx.instruction.bodies]
    found = []
    for place in range(len(cx.instruction.outputs)):
        told = [static(body.slots[body.outputs[place]]) for body in bodies]
        for size, *each in zip(cx.output_shape(place), *told, strict=True):
            if not same(*each):
                found.append((size, tuple(each)))
    return found


def _state_bytes(instance: Instance) -> int:
    """Where the arena of the body begins: behind what an iteration leaves of each state."""
    if instance.instruction.op != "Loop":
        return 0
    slots = instance.program.slots
    outputs = instance.instruction.outputs[: instance.int("states")]
    return sum(_aligned(slots[slot].most_bytes) for slot in outputs)


def _loop_needs(instance: Instance) -> Needs:
    return Needs(workspace=_state_bytes(instance) + _arena_bytes(instance.instruction.bodies))


@kernel("Loop", kinds=ANY, needs=_loop_needs, refuse=_refuse)
def loop(cx: KernelContext) -> None:
    """States live in the outputs; rows of operands and results are pointed at."""
    states, body = cx.int("states"), cx.body
    kept = [cx.output(i) for i in range(states)]
    first = 2
    for i, state in enumerate(kept):
        if _nbytes(state) and _is_alike(cx.input(first + i), state):
            size = as_bytes(_nbytes(state))
            body.line(f"memcpy({state.name}, {cx.input(first + i).name}, {size});")
    reads, writes = cx.ints("reads"), cx.ints("writes")
    rows = [cx.input(first + states + i) for i in range(len(reads))]
    results = [cx.output(states + i) for i in range(len(writes))]
    rest = range(first + states + len(rows), len(cx.instruction.inputs))
    trip = _trip(cx, rows)
    counted = bool(cx.attributes["counted"])
    start = f"{cx.input(1).name}[0]" if cx.slot(1) is not None else "1"
    if counted:
        body.line(f"uint8_t going = {start};")
    test = " && going" if counted else ""
    finds = bool(cx.attributes["finds"])
    if finds:
        body.line("int64_t done = 0;")
    with body.block(f"for (int64_t i = 0; i < {trip}{test}; ++i)"):
        if finds:
            cx.may_fail()
            body.line(f"if (done++ == {highest(results[0].shape[0])})")
            body.line("    return 1;")
        inputs = ["&i", "&before"] if counted else []
        inputs += [state.name for state in kept]
        inputs += [_row(cx, row, back, trip) for row, back in zip(rows, reads, strict=True)]
        inputs += [cx.input(i).name for i in rest]
        outputs = ["&going"] if counted else []
        if counted:
            body.line("const uint8_t before = going;")
        left = _places_of_states(cx, kept)
        outputs += left
        outputs += [_row(cx, row, back, trip) for row, back in zip(results, writes, strict=True)]
        _call(cx, 0, inputs, outputs)
        for state, made in zip(kept, left, strict=True):
            if _nbytes(state):
                body.line(f"memcpy({state.name}, {made}, {as_bytes(_nbytes(state))});")
    if finds:
        cx.settle(results[0].shape[0], "done")


def _is_alike(one: Operand, other: Operand) -> bool:
    """False for what a loop starts with, if its first round replaces it by other sizes."""
    return len(one.shape) == len(other.shape) and all(map(same, one.shape, other.shape))


def _places_of_states(cx: KernelContext, states: Sequence[Operand]) -> list[str]:
    """Where an iteration leaves each state, until it is copied over the one before."""
    places, offset = [], 0
    for state in states:
        places.append(f"{cx.scratch(BYTE)} + {offset}" if _nbytes(state) else state.name)
        offset += _aligned(highest(_nbytes(state)))
    return places


def _trip(cx: KernelContext, rows: Sequence[Operand]) -> str:
    """How often at most, as C."""
    if cx.int("trip") >= 0:
        return str(cx.int("trip"))
    if rows:
        return str(rows[0].shape[0])
    return f"(int64_t){cx.input(0).name}[0]" if cx.slot(0) is not None else "INT64_MAX"


def _row(cx: KernelContext, operand: Operand, backwards: int, trip: str) -> str:
    """A pointer to the row of this iteration."""
    _, *inner = operand.shape
    size = 1
    for dim in inner:
        size *= dim
    at = f"({trip} - 1 - i)" if backwards else "i"
    return f"{operand.name} + {at} * {size}"
