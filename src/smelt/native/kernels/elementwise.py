"""Elementwise operators, each by its row in ``operators/elementwise``."""

from __future__ import annotations

from functools import cache

from smelt.native.kernels import exponential
from smelt.native.kernels.constant_power import power_text
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.integer import divide, modulo, power, shift
from smelt.native.kernels.kernel import Kernel, KernelContext
from smelt.native.kernels.lane_math import in_lanes
from smelt.native.kernels.nest import emit_map
from smelt.native.kernels.statements import Statements, read_once
from smelt.native.types import CType, fill_types
from smelt.operators.elementwise import ROWS, Row
from smelt.program.run_sizes import same
from smelt.program.storage import Needs

COMPUTED = {"Div": divide, "Mod": modulo, "Pow": power, "BitShift": shift}
"""Integer operators that need a support function, because division by zero must not trap."""


def text_of(row: Row, type_: CType) -> str:
    """Return a row's C for elements of a type: ``{0} + {1}`` for Add; "" if it has none."""
    if type_.kind == "int" and not type_.signed and row.unsigned:
        return row.unsigned
    return {"float": row.floats, "int": row.integers, "bool": row.booleans}[type_.kind]


def combine(op: str, type_: CType, *operands: str) -> str:
    """Return the C expression of the operator ``op`` on ``operands``."""
    return fill_types(text_of(ROWS[op], type_), type_).format(*operands)


def expression(cx: KernelContext, row: Row) -> tuple[list[str], str]:
    """Return an instruction's statements and C expression, on the operands ``{0}``, ``{1}``..."""
    type_ = cx.type(0)
    if row.name in COMPUTED and type_.kind == "int":
        return [], fill_types(COMPUTED[row.name](cx), type_)
    text = text_of(row, type_)
    if row.name == "Pow" and type_.kind == "float":
        text = power_text(cx) or text
    if text or row.formula is None:
        return [], fill_types(text, type_)
    statements = Statements(type_)
    operands = [statements.named(f"{{{i}}}") for i in range(len(cx.instruction.inputs))]
    result = statements.scalar(row.formula(statements, *operands, **cx.instruction.attributes))
    return read_once(statements.lines, result.name)


def emit_each(cx: KernelContext, text: str, before: list[str] | None = None) -> None:
    """Write one loop nest that stores the expression ``text`` for each element;
    see ``emit_map``."""
    reads = [cx.strided_input(i) for i in range(len(cx.instruction.inputs))]
    output = cx.output()
    accesses = [read.broadcast(output.shape) for read in reads]
    emit_map(cx.body, output.shape, output.access(), accesses, text, before or (), shared=True)


def in_place(instance: Instance) -> Needs:
    """Return needs that allow overwriting each input of the output's size and type.

    An input that a loop reads with the strides of a removed Slice is excluded: the loop would
    overwrite elements before it reads them.
    """
    output = instance.program.slots[instance.instruction.outputs[0]]
    inputs = instance.instruction.inputs
    read_by_views = {slot for position, slot in enumerate(inputs) if instance.view(position)}
    overwritable = [
        position
        for position in range(len(inputs))
        if (slot := instance.slot(position)) is not None
        and inputs[position] not in read_by_views
        and slot.dtype == output.dtype
        and same(slot.shape, output.shape)
    ]
    return Needs(in_place=tuple(overwritable))


def _refuse(instance: Instance) -> str | None:
    """Return why the instruction is refused, None unless it is an integer power by a float
    exponent.
    """
    second = instance.slot(1)
    integers = instance.type(0).kind == "int" and instance.instruction.op == "Pow"
    if integers and second is not None and instance.type(1).kind != "int":
        return "an integer power with a floating-point exponent"
    return None


def kernel_for(row: Row) -> Kernel:
    """Return the kernel of an operator, for the element kinds for which its row has C."""

    def element(cx: KernelContext) -> tuple[list[str], str]:
        """Return the C of one element, with calls of ``math.h`` replaced by functions that
        vectorize.
        """
        before, text = expression(cx, row)
        return [in_lanes(cx, line) for line in before], in_lanes(cx, text)

    def emit(cx: KernelContext) -> None:
        """Write the loop over all elements."""
        if row.name == "Exp" and exponential.supports(cx):
            exponential.emit(cx)
            return
        before, text = element(cx)
        emit_each(cx, text, before)

    return Kernel(emit, in_place, _refuse, kinds_of(row), element, shared=True)


def kinds_of(row: Row) -> frozenset[str]:
    """Return the element kinds for which the row has C; empty if another kernel computes the
    operator.
    """
    texts = {"float": row.floats or row.formula, "int": row.integers, "bool": row.booleans}
    kinds = {kind for kind, text in texts.items() if text}
    return frozenset(kinds | {"int"} if row.name in COMPUTED else kinds)


@cache
def by_row(op: str) -> Kernel | None:
    """Return the kernel that the row of ``op`` describes, None without such a row."""
    row = ROWS.get(op)
    return kernel_for(row) if row is not None and kinds_of(row) else None


def operators_with_c() -> tuple[str, ...]:
    """Return the operators for which ``by_row`` has a kernel."""
    return tuple(name for name in ROWS if by_row(name) is not None)
