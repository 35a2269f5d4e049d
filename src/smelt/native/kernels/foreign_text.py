"""A kernel written as one C expression of input elements and attributes."""

from __future__ import annotations

from collections.abc import Iterator
from string import Formatter

import onnx_ir as ir

from smelt.native.kernels.elementwise import emit_each, in_place
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import Kernel, KernelContext
from smelt.native.types import CType, fill_types
from smelt.operators.declare import Attribute, Operator
from smelt.program.run_sizes import same

NUMBERS = (ir.AttributeType.FLOAT, ir.AttributeType.INT)
"""The attribute types that a text may name."""


def problems(text: str, operator: Operator) -> Iterator[str]:
    """Yield each mistake in ``text``, which is the C of ``operator``."""
    if len(operator.outputs) != 1:
        yield f"a text computes one result, and there are {len(operator.outputs)}"
    try:
        names = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
    except ValueError as error:
        yield f"{text!r}: {error}; a brace of C is written twice"
        return
    numbers = {attribute.name for attribute in operator.attributes if attribute.type in NUMBERS}
    for name in dict.fromkeys(names):
        if not (name.isdecimal() and int(name) < len(operator.inputs)) and name not in numbers:
            count = len(operator.inputs)
            yield f"{{{name}}} is neither one of {count} inputs nor a number among the attributes"


def kernel_of_text(text: str, operator: Operator) -> Kernel:
    """Return the kernel that computes each element by ``text``.

    It refuses an instruction with a non-default attribute that the text does not name.
    """
    named = {name for _, name, _, _ in Formatter().parse(text)}
    unnamed_attributes = [each for each in operator.attributes if each.name not in named]

    def emit(cx: KernelContext) -> None:
        """Write the loop over all elements."""
        emit_each(cx, _filled_text(text, operator, cx, cx.type(0)))

    def refuse(instance: Instance) -> str | None:
        """Return why the instruction is refused, None if it is supported."""
        return _attribute_refusal(unnamed_attributes, instance) or _shape_refusal(
            instance, len(operator.inputs)
        )

    return Kernel(emit, in_place, refuse)


def _filled_text(text: str, operator: Operator, cx: KernelContext, type_: CType) -> str:
    """Return ``text`` with types and attributes filled in; inputs stay ``{0}``, ``{1}``..."""
    types = {attribute.name: attribute.type for attribute in operator.attributes}
    parts = []
    for literal, name, _, _ in Formatter().parse(fill_types(text, type_)):
        parts.append(literal.replace("{", "{{").replace("}", "}}"))
        if name in types:
            value = cx.instruction.attributes[name]
            assert isinstance(value, int | float)
            is_int = types[name] == ir.AttributeType.INT
            parts.append(f"({int(value)})" if is_int else type_.literal(value))
        elif name is not None:
            parts.append(f"{{{name}}}")
    return "".join(parts)


def _attribute_refusal(unnamed_attributes: list[Attribute], instance: Instance) -> str | None:
    """Return why a non-default attribute is refused.

    None if all of ``unnamed_attributes`` have their defaults.
    """
    for attribute in unnamed_attributes:
        if instance.instruction.attributes[attribute.name] != attribute.default:
            return (
                f"its text does not name the attribute {attribute.name!r}, so it is right for "
                f"{attribute.default!r} only"
            )
    return None


def _shape_refusal(instance: Instance, inputs: int) -> str | None:
    """Return why the inputs are refused, None if they broadcast to the output."""
    slots = instance.instruction.inputs
    if len(slots) < inputs or any(slot < 0 for slot in slots):
        return "its text is for all inputs, and one is absent"
    output = instance.program.slots[instance.instruction.outputs[0]].shape
    for number in slots:
        shape = instance.program.slots[number].shape
        aligned = zip(reversed(shape), reversed(output), strict=False)
        if len(shape) > len(output) or not all(
            declared == 1 or same(declared, given) for declared, given in aligned
        ):
            return "its text is for results as large as the inputs are when they are broadcast"
    return None
