"""``smelt.native::Map``: several elementwise operators in one loop.

Each part, one of the operators, is a C variable, so intermediates are neither stored nor computed
twice. Each part rounds as if it were stored: if compilers contracted a product and a sum,
x * x - y * y of equal x and y might be negative, and its square root NaN.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from smelt.native.kernels.elementwise import in_place
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import ANY, Kernel, KernelContext, kernel
from smelt.native.kernels.nest import emit_map
from smelt.native.types import C_TYPES
from smelt.program.instruction import Instruction, Program

MAP = "smelt.native::Map"


def is_elementwise(program: Program, step: Instruction) -> bool:
    """True if ``step`` may join a Map: it is elementwise, and calls only functions that compilers
    vectorize."""
    kernel_ = _kernel(step.op)
    if kernel_ is None or kernel_.element is None or len(step.outputs) != 1 or step.epilogue:
        return False
    slots = [program.slots[slot] for slot in (*step.outputs, *step.inputs) if slot >= 0]
    if step.inputs[0] < 0 or any(len(slot.shape) > len(slots[0].shape) for slot in slots):
        return False
    if any(slot.dtype not in C_TYPES or C_TYPES[slot.dtype].computed for slot in slots):
        return False
    instance = Instance(program, step)
    if instance.type().kind not in kernel_.kinds or kernel_.refuse(instance) is not None:
        return False
    before, text = kernel_.element(KernelContext(program, step))
    return not any(_FUNCTION.search(line) for line in (*before, text))


_FUNCTION = re.compile(
    r"\b(a?(sin|cos|tan)h?f?|(exp|expm1|exp2|log|log1p|log2|erf|pow|[lt]gamma|cbrt)f?)\("
)


def _kernel(op: str) -> Kernel | None:
    """Return the kernel of an operator, imported late because kernels import this module."""
    from smelt.native.kernels import kernel_of

    return kernel_of(op)


@kernel(MAP, kinds=ANY, needs=in_place, shared=True)
def fused(cx: KernelContext) -> None:
    """Write one loop nest over the shape of the output; see ``emit_map``.

    ```
    for (ptrdiff_t i0 = 0; i0 < 6; ++i0) {
        const float v0 = x0[i0];
        const float part0 = v0 + 1.0f;
        const float part1 = part0 * part0;
        y0[i0] = part1;
    }
    ```
    """
    cx.rounds_each = True
    output = cx.output()
    reads = [cx.strided_input(i).broadcast(output.shape) for i in range(len(cx.instruction.inputs))]
    lines, result = part_lines(cx)
    emit_map(cx.body, output.shape, output.access(), reads, result, lines, shared=True)


def part_lines(cx: KernelContext) -> tuple[list[str], str]:
    """Return the statements of all parts for one element of each input, and the result variable.

    The placeholder ``{0}`` stands for the element of input 0, and so on; ``emit_map`` fills them.
    Other braces are doubled. For ``Relu(x + y)``, the result variable is ``part1``, and the lines:

    ```
    const float part0 = {0} + {1};
    const float part1 = part0 > 0 ? part0 : 0;
    ```
    """
    names = {slot: f"{{{i}}}" for i, slot in enumerate(cx.inputs_before_slices)}
    lines: list[str] = []
    for number, part in enumerate(cx.instruction.parts):
        part_context = KernelContext(cx.program, part, support=cx.support)
        lines += _part_statements(
            part_context, f"part{number}", [names.get(slot, "") for slot in part.inputs]
        )
        names[part.outputs[0]] = f"part{number}"
    return lines, names[cx.instruction.parts[-1].outputs[0]]


def _part_statements(cx: KernelContext, name: str, operands: Sequence[str]) -> list[str]:
    """Return the statements that define the variable ``name`` as the result of one part.

    ``operands`` are the C of its operands: variables of earlier parts, or placeholders.
    """
    kernel_ = _kernel(cx.instruction.op)
    assert kernel_ is not None
    assert kernel_.element is not None  # ``is_elementwise`` checked this
    statements, text = kernel_.element(cx)
    value = text.format(*operands)
    type_ = C_TYPES[cx.program.slots[cx.instruction.outputs[0]].dtype].name
    if not statements:
        return [f"const {type_} {name} = {value};"]
    filled = [line.format(*operands) for line in statements]
    return [f"{type_} {name};", "{{", *filled, f"{name} = {value};", "}}"]
