"""Split kernels into shards that the caller's threads compute in parallel.

Independent loop iterations are split into as many ranges as there are shards, each with its own
scratch space, at fixed positions. So results equal those of one thread bit by bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from smelt.native.kernels import kernel_of
from smelt.native.work import macs
from smelt.program.instruction import Instruction, Program
from smelt.program.memory import aligned
from smelt.program.run_sizes import Size
from smelt.program.storage import Needs

FEWEST_MACS = 1 << 18
"""Smaller steps, in multiply-adds, are not worth the microseconds that threads cost."""

FEWEST_BYTES = 1 << 17
"""The same limit for steps without products: the bytes of operands that vary, and of results."""

PARALLEL_FOR = "typedef void (*{0}_parallel_for)(void *context, int count,\n" + (
    "    void (*body)(void *given, int part), void *given);"
)
"""The type of a function that calls ``body(given, 0)`` to ``body(given, count - 1)`` and returns
when all have returned."""

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


SINGLE_THREADED = "single_threaded"
"""The attribute of an instruction that stays in one shard to save scratch space."""


def parts_of(program: Program, instruction: Instruction, parts: int) -> int:
    """Return the number of shards of an instruction: ``parts``, or 1 if it is too small to be
    split.

    It is also 1 for run-time sizes, because the work is unknown, but for products with packed
    weights, whose size is the least work.
    """
    kernel = kernel_of(instruction.op)
    if (
        parts == 1
        or kernel is None
        or not kernel.shared
        or SINGLE_THREADED in instruction.attributes
    ):
        return 1
    slots = {slot for slot in (*instruction.inputs, *instruction.outputs) if slot >= 0}
    if any(isinstance(dim, Size) for slot in slots for dim in program.slots[slot].shape):
        sizes = (instruction.attributes.get(name) for name in ("N", "K"))
        work = prod(size for size in sizes if isinstance(size, int))
        return parts if instruction.op == "MatMulNBits" and work >= FEWEST_MACS else 1
    bytes_moved = sum(program.slots[slot].nbytes for slot in slots - program.constants.keys())
    products = macs(program, instruction)
    is_worth = products >= FEWEST_MACS if products else bytes_moved >= FEWEST_BYTES
    return parts if is_worth else 1


def shared_needs(needs: Needs, parts: int, alignment: int) -> Needs:
    """Return the storage needs of ``parts`` shards: scratch space for each, and no input
    overwritten, because another shard may still read it.
    """
    if parts == 1:
        return needs
    return replace(needs, over=(), workspace=parts * aligned(needs.workspace, alignment))


def task(prefix: str, parts: int, extra_parameters: Mapping[str, str]) -> str:
    """Return the C struct that all shards receive, and the function that runs the shards."""
    members = "".join(f"    {declared};\n" for declared in extra_parameters.values())
    return TASK.format(prefix, parts, members)


def task_value(prefix: str, extra_parameters: Mapping[str, str]) -> str:
    """Return the C declaration of the struct ``task`` of one run."""
    members = ["inputs", "outputs", "memory", *extra_parameters, "parallel_for", "context"]
    return f"struct {prefix}_task task = {{ {', '.join(members)} }};"


def part_function(name: str, call: str, prefix: str, extra_parameters: Mapping[str, str]) -> str:
    """Return the C function that computes one shard by ``call``.

    ```
    static void part_of_3(void *given, int number)
    {
        const struct net_task *task = (const struct net_task *)given;
        const void *const *inputs = task->inputs;
        const ptrdiff_t part = number;
        DotGeneral_2((const float *)inputs[0], part);
    }
    ```
    """
    types = {"inputs": "const void *const *inputs", "outputs": "void *const *outputs"}
    types |= {"memory": "unsigned char *memory", **extra_parameters}
    lines = [f"const struct {prefix}_task *task = (const struct {prefix}_task *)given;"]
    lines += [f"{declared} = task->{name};" for name, declared in types.items()]
    lines += [f"(void){name};" for name in types]
    lines += ["const ptrdiff_t part = number;", f"{call};"]
    inner = "".join(f"    {line}\n" for line in lines)
    return f"static void {name}(void *given, int number)\n{{\n{inner}}}\n"
