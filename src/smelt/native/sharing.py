"""Parts of a run that may be computed at the same time, by threads of whoever calls.

The loops of a kernel that need nothing of each other are cut into as many ranges as there are
parts, each with scratch space of its own, at the same places whoever computes them. So results are
those of one thread to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from smelt.native.kernels import kernel_of
from smelt.native.work import macs
from smelt.program.instruction import Instruction, Program
from smelt.program.memory import aligned
from smelt.program.run_sizes import Size
from smelt.program.storage import Needs

FEWEST_MACS = 1 << 18
"""Products, and bytes, below which threads cost more than they save: some microseconds."""

FEWEST_BYTES = 1 << 17

PARALLEL_FOR = "typedef void (*{0}_parallel_for)(void *context, int count,\n" + (
    "    void (*body)(void *given, int part), void *given);"
)
"""Calls ``body(given, 0)`` to ``body(given, count - 1)`` and returns when all have returned."""

TASK = """struct {0}_task {{
    const void *const *inputs;
    void *const *outputs;
    unsigned char *memory;
{2}    {0}_parallel_for parallel_for;
    void *context;
}};
static void {0}_share(struct {0}_task *task, void (*body)(void *given, int part))
{{
    if (task->parallel_for != NULL)
        task->parallel_for(task->context, {1}, body, task);
    else
        for (int part = 0; part < {1}; ++part)
            body(task, part);
}}
"""


ALONE = "alone"
"""The attribute of an instruction that is not cut, for scratch space of all parts is too much."""


def parts_of(program: Program, instruction: Instruction, parts: int) -> int:
    """How many of ``parts`` a kernel is cut into: all, or 1 where it is not worth it.

    Where the run decides sizes, it is 1, too: whether it is worth it is not known before.
    """
    kernel = kernel_of(instruction.op)
    if parts == 1 or kernel is None or not kernel.shared or ALONE in instruction.attributes:
        return 1
    slots = {slot for slot in (*instruction.inputs, *instruction.outputs) if slot >= 0}
    if any(isinstance(dim, Size) for slot in slots for dim in program.slots[slot].shape):
        return 1
    moved = sum(program.slots[slot].nbytes for slot in slots - program.constants.keys())
    products = macs(program, instruction)
    return parts if products >= FEWEST_MACS or (not products and moved >= FEWEST_BYTES) else 1


def shared_needs(needs: Needs, parts: int, alignment: int) -> Needs:
    """What ``parts`` ask of storage: scratch space each, and no input that shrinks."""
    if parts == 1:
        return needs
    return replace(needs, over=(), workspace=parts * aligned(needs.workspace, alignment))


def task(prefix: str, parts: int, handed_on: Mapping[str, str]) -> str:
    """What all parts are given, and the function that has them computed, as C."""
    members = "".join(f"    {declared};\n" for declared in handed_on.values())
    return TASK.format(prefix, parts, members)


def task_value(prefix: str, handed_on: Mapping[str, str]) -> str:
    """The declaration of the ``task`` of a run."""
    given = ["inputs", "outputs", "memory", *handed_on, "parallel_for", "context"]
    return f"struct {prefix}_task task = {{ {', '.join(given)} }};"


def part_function(name: str, call: str, prefix: str, handed_on: Mapping[str, str]) -> str:
    """The function that computes one part by a ``call``."""
    types = {"inputs": "const void *const *inputs", "outputs": "void *const *outputs"}
    types |= {"memory": "unsigned char *memory", **handed_on}
    lines = [f"const struct {prefix}_task *task = (const struct {prefix}_task *)given;"]
    lines += [f"{declared} = task->{name};" for name, declared in types.items()]
    lines += [f"(void){name};" for name in types]
    lines += ["const ptrdiff_t part = number;", f"{call};"]
    inner = "".join(f"    {line}\n" for line in lines)
    return f"static void {name}(void *given, int number)\n{{\n{inner}}}\n"
