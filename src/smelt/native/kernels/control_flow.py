"""If and Loop: each body is a C function over pointers, as the whole model is.

A body finds its own arena in the scratch space of the instruction. What an iteration leaves of a
state is written beside it and then copied over it, since a body may read a state to its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import onnx_ir as ir

from smelt.native.kernels.instance import Instance, static
from smelt.native.kernels.kernel import ANY, KernelContext, as_bytes, kernel
from smelt.native.kernels.operand import Operand
from smelt.native.run_time import told_sizes
from smelt.native.types import C_TYPES
from smelt.program.instruction import Body, Slot
from smelt.program.memory import ALIGNMENT
from smelt.program.run_sizes import highest, lowest, same
from smelt.program.storage import Needs

BYTE = C_TYPES[ir.DataType.UINT8]


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _arena_bytes(bodies: Sequence[Body]) -> int:
    return max((body.plan.arena_bytes for body in bodies if body.plan is not None), default=0)


def _branch_needs(instance: Instance) -> Needs:
    return Needs(workspace=_arena_bytes(instance.instruction.bodies))


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
    body = cx.instruction.bodies[place].program
    more = cx.all_handed_on() + "".join(f", {each.size}" for each in body.carried)
    told = told_sizes(body)
    for size in told:
        cx.body.line(f"ptrdiff_t {size};")
    more += "".join(f", &{size}" for size in told)
    call = f"{cx.body_names[place]}({read}, {written}, {memory}{more})"
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


@dataclass(frozen=True)
class _State:
    """What a loop carries: its operand, and the bytes with which it starts, which each round gets,
    and which it leaves."""

    name: str
    starts: int
    given: int
    left: int


def _head(instance: Instance) -> int:
    """How many outputs of a body come before its states; of inputs, twice as many do."""
    return int(bool(instance.attributes["counted"]))


def _slots_of_states(instance: Instance) -> Iterator[tuple[Slot, Slot]]:
    """What a round gets of each state and what it leaves, as its body has them."""
    body, head = instance.instruction.bodies[0].program, _head(instance)
    for i in range(instance.int("states")):
        yield body.slots[body.inputs[2 * head + i]], body.slots[body.outputs[head + i]]


def _state_bytes(instance: Instance) -> int:
    """Where the arena of the body begins: behind what an iteration leaves of each state."""
    if instance.instruction.op != "Loop":
        return 0
    return sum(_aligned(left.most_bytes) for _, left in _slots_of_states(instance))


def _loop_needs(instance: Instance) -> Needs:
    return Needs(workspace=_state_bytes(instance) + _arena_bytes(instance.instruction.bodies))


def _states(cx: KernelContext) -> list[_State]:
    """A state that starts with other sizes than rounds leave is read by none: it starts with
    nothing."""
    carried = {str(each.size) for each in cx.instruction.bodies[0].program.carried}
    states = []
    for i, (given, left) in enumerate(_slots_of_states(cx)):
        pairs = zip(given.sizes, left.sizes, strict=False)
        alike = all(str(x) in carried or same(x, y) for x, y in pairs)
        alike = alike and len(given.shape) == len(left.shape)
        first = cx.program.slots[cx.instruction.inputs[2 + i]]
        starts = first.nbytes if alike else 0
        states.append(_State(cx.output(i).name, starts, given.nbytes, left.nbytes))
    return states


def _carried_sizes(cx: KernelContext) -> list[tuple[int, int, int, int]]:
    """The sizes of states that vary: the variable, where it starts, what a round makes of it, and
    what the result has."""
    body = cx.instruction.bodies[0].program
    carried, found = {str(each.size) for each in body.carried}, {}
    for i, (given, left) in enumerate(_slots_of_states(cx)):
        first, result = (
            cx.program.slots[s].sizes
            for s in (cx.instruction.inputs[2 + i], cx.instruction.outputs[i])
        )
        for axis, size in enumerate(given.sizes):
            if str(size) in carried:
                found[str(size)] = (size, first[axis], left.sizes[axis], result[axis])
    return list(found.values())


@contextmanager
def _rounds(cx: KernelContext, trip: str, counted: bool, most: object) -> Iterator[None]:
    """For round ``i``; of those that are ``done``, counted if a size is found so, at ``most``."""
    body = cx.body
    if counted:
        going = f"{cx.input(1).name}[0]" if cx.slot(1) is not None else "1"
        body.line(f"uint8_t going = {going};")
    if most is not None:
        body.line("int64_t done = 0;")
    test = " && going" if counted else ""
    with body.block(f"for (int64_t i = 0; i < {trip}{test}; ++i)"):
        if most is not None:
            cx.may_fail()
            body.line(f"if (done++ == {most})")
            body.line("    return 1;")
        if counted:
            body.line("const uint8_t before = going;")
        yield


@kernel("Loop", kinds=ANY, needs=_loop_needs, refuse=_refuse)
def loop(cx: KernelContext) -> None:
    """States live in the outputs; rows of operands and results are pointed at."""
    states, sizes, body = _states(cx), _carried_sizes(cx), cx.body
    for size, start, _, _ in sizes:
        body.line(f"ptrdiff_t {size} = {start};")
    for i, state in enumerate(states):
        _copy(cx, state.name, cx.input(2 + i).name if highest(state.starts) else "", state.starts)
    reads, writes = cx.ints("reads"), cx.ints("writes")
    count = len(states)
    rows = [cx.input(2 + count + i) for i in range(len(reads))]
    results = [cx.output(count + i) for i in range(len(writes))]
    rest = range(2 + count + len(rows), len(cx.instruction.inputs))
    trip, counted = _trip(cx, rows), bool(cx.attributes["counted"])
    finds = bool(cx.attributes["finds"])
    inputs, outputs = (["&i", "&before"], ["&going"]) if counted else ([], [])
    with _rounds(cx, trip, counted, highest(results[0].shape[0]) if finds else None):
        left = _places_of_states(cx, states)
        inputs += [state.name for state in states]
        inputs += [_row(row, back, trip) for row, back in zip(rows, reads, strict=True)]
        inputs += [cx.input(i).name for i in rest]
        outputs += left
        outputs += [_row(row, back, trip) for row, back in zip(results, writes, strict=True)]
        _call(cx, 0, inputs, outputs)
        _check_sizes(cx, sizes)
        for state, made in zip(states, left, strict=True):
            _copy(cx, state.name, made, state.left)
        for number, (size, *_) in enumerate(sizes):
            body.line(f"{size} = next{number};")
    if finds:
        cx.settle(results[0].shape[0], "done")
    for size, _, _, result in sizes:
        cx.settle(result, str(size))


def _copy(cx: KernelContext, to: str, source: str, size: int) -> None:
    if highest(size):
        cx.body.line(f"memcpy({to}, {source}, {as_bytes(size)});")


def _check_sizes(cx: KernelContext, sizes: Sequence[tuple[int, int, int, int]]) -> None:
    """End a run in which a state has outgrown its bounds, before it is copied."""
    for number, (size, _, after, _) in enumerate(sizes):
        cx.may_fail()
        cx.body.line(f"const ptrdiff_t next{number} = {after};")
        cx.body.line(f"if (next{number} < {lowest(size)} || next{number} > {highest(size)})")
        cx.body.line("    return 1;")


def _places_of_states(cx: KernelContext, states: Sequence[_State]) -> list[str]:
    """Where an iteration leaves each state, until it is copied over the one before."""
    places, offset = [], 0
    for state in states:
        places.append(f"{cx.scratch(BYTE)} + {offset}" if highest(state.left) else state.name)
        offset += _aligned(highest(state.left))
    return places


def _trip(cx: KernelContext, rows: Sequence[Operand]) -> str:
    """How often at most, as C."""
    if cx.int("trip") >= 0:
        return str(cx.int("trip"))
    if rows:
        return str(rows[0].shape[0])
    return f"(int64_t){cx.input(0).name}[0]" if cx.slot(0) is not None else "INT64_MAX"


def _row(operand: Operand, backwards: int, trip: str) -> str:
    """A pointer to the row of this iteration."""
    _, *inner = operand.shape
    size = 1
    for dim in inner:
        size *= dim
    at = f"({trip} - 1 - i)" if backwards else "i"
    return f"{operand.name} + {at} * {size}"
