"""Clip: the maximum with the lower bound, then the minimum with the upper bound; NaN stays NaN."""

from __future__ import annotations

from smelt.native.kernels.elementwise import in_place
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import NUMBER, KernelContext, kernel
from smelt.native.kernels.nest import Access, emit_map
from smelt.native.types import CType

_BOUNDS = (("min", "<"), ("max", ">"))


def _refuse(instance: Instance) -> str | None:
    """Return why a bound is refused, None if it is one number."""
    for position in (1, 2):
        slot = instance.slot(position)
        if slot is not None and slot.size != 1:
            return "a bound with more than one element"
    return None


def element(cx: KernelContext) -> tuple[list[str], str]:
    """Return the C that clips one element, with ``{i}`` for input i.

    A bound is an attribute, an input of one number, or absent.

    ```
    (({0}) < 0.0f ? 0.0f : ({0})) > 6.0f ? 6.0f : (({0}) < 0.0f ? 0.0f : ({0}))
    ```
    """
    text, type_ = "{0}", cx.type(0)
    for position, (name, sign) in enumerate(_BOUNDS, 1):
        value = cx.instruction.attributes[name]
        if cx.slot(position) is not None:
            bound = f"{{{position}}}"
        elif isinstance(value, int | float) and not _is_idle(type_, name, value):
            bound = type_.literal(value)
        else:
            continue
        text = f"({text}) {sign} {bound} ? {bound} : ({text})"
    return [], text


@kernel("Clip", kinds=NUMBER, needs=in_place, refuse=_refuse, element=element, shared=True)
def clip(cx: KernelContext) -> None:
    """Write the loop that clips each element of input 0."""
    source, output = cx.input(0), cx.output()
    reads = {0: source.access((1,))}
    for position in (1, 2):
        operand = cx.optional(position)
        if operand is not None:
            reads[position] = Access(operand.name, operand.type, (0,))
    text = element(cx)[1]
    # emit_map numbers the operands that are present: without a lower bound, {2} becomes {1}.
    for number, position in enumerate(reads):
        text = text.replace(f"{{{position}}}", f"{{{number}}}")
    values = list(reads.values())
    emit_map(cx.body, (source.size,), output.access((1,)), values, text, shared=True)


def _is_idle(type_: CType, name: str, value: float) -> bool:
    """True if the bound excludes no value of ``type_`` (compilers warn about such comparisons)."""
    if type_.kind == "float":
        return False
    bits = 8 * type_.size
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if type_.signed else (0, 2**bits - 1)
    return value <= low if name == "min" else value >= high
