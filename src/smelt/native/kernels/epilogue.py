"""The epilogue of a product: the Relu of ConvRelu, then the fused steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import onnx_ir as ir

from smelt.loops import algorithm as loops
from smelt.loops.algorithm import Algorithm, Axis, Buffer, Load, Stage
from smelt.loops.lower import lower
from smelt.loops.operators import NOT_BELOW_0, Operator
from smelt.loops.printer import print_nest
from smelt.native.emit.writer import Writer
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.nest import broadcast_strides
from smelt.native.types import C_TYPES
from smelt.program.instruction import ABSENT, RESULT, Instruction, Step
from smelt.program.run_sizes import Dim, same

FLOAT = C_TYPES[ir.DataType.FLOAT]
CONV_RELU = "smelt.c::ConvRelu"
RELU = "{0} < 0 ? 0 : {0}"
_WORD = re.compile(r"\bt(\d+)\b")
"""Matches variables of statements, which are renamed for each step."""


@dataclass(frozen=True, slots=True)
class SideOperand:
    """A side operand, read at each element of the result: a pointer and strides, 0 to repeat."""

    pointer: str
    row: Dim
    column: Dim

    def at(self, row: str, column: str) -> SideOperand:
        """Return the operand whose first element is at ``row`` and ``column`` of this one."""
        return SideOperand(
            plus(plus(self.pointer, row, self.row), column, self.column), self.row, self.column
        )


@dataclass(frozen=True, slots=True)
class Epilogue:
    """The epilogue: C that maps a sum ``{0}`` and side operands ``{1}``... to what is stored.

    ``lines`` are statements before the text.
    """

    text: str = "{0}"
    side_operands: tuple[SideOperand, ...] = ()
    lines: tuple[str, ...] = ()

    def of_rows(self, length: Dim) -> Epilogue:
        """Return the epilogue of one row as that of rows of ``length``, one after the other.

        ``column`` of a side operand counts elements of the plane: a row is ``length`` of them.
        """
        operands = (replace(operand, row=operand.column * length) for operand in self.side_operands)
        return replace(self, side_operands=tuple(operands))

    def of_stores(self, row: Dim, column: Dim) -> loops.Epilogue | None:
        """Return the epilogue for the loop language, at the element ``row``, ``column``.

        None if the sum is stored unchanged.
        """
        if self.text == "{0}" and not self.lines:
            return None
        operands = (
            Load(
                Buffer(f"({operand.pointer})", FLOAT, (1,)),
                (row * operand.row + column * operand.column,),
            )
            for operand in self.side_operands
        )
        return loops.Epilogue(steps_operator(self.lines, self.text), tuple(operands))

    def at(self, row: str, column: str) -> Epilogue:
        """Return the epilogue whose first element is at ``row`` and ``column`` of this one."""
        return replace(
            self, side_operands=tuple(operand.at(row, column) for operand in self.side_operands)
        )

    def after(self, text: str, side_operand: SideOperand) -> Epilogue:
        """Return the epilogue that applies ``text`` to the sum, and this epilogue to the outcome.

        ``text`` is C with ``{0}`` for the sum and ``{1}`` for ``side_operand``, which becomes the
        first side operand; the numbers of the others grow by one.
        """
        shifted = [f"{{{number}}}" for number in range(2, len(self.side_operands) + 2)]
        first = "before"
        lines = (
            f"const float {first} = {text};",
            *(line.format(first, *shifted) for line in self.lines),
        )
        final = self.text.format(first, *shifted)
        return replace(
            self, text=final, side_operands=(side_operand, *self.side_operands), lines=lines
        )


def ends_in_relu(cx: KernelContext) -> bool:
    """True if the kernel must compute the Relu of ConvRelu; calling this promises to do so."""
    cx.computes_relu = True
    return cx.instruction.op == CONV_RELU


def lost_steps(cx: KernelContext) -> tuple[str, ...]:
    """Return the fused operators that the kernel's C does not compute.

    A step of ``epilogue_of`` is present if the C has its first statement:
        const float step0 = ...;
    """
    text = "\n".join((cx.body.text(), *cx.support.values())) if cx.instruction.epilogue else ""
    relu = () if cx.instruction.op != CONV_RELU or cx.computes_relu else ("Relu",)
    steps = enumerate(cx.instruction.epilogue)
    return (
        *relu,
        *(step.op for number, step in steps if f"{_step_declaration(number)} = " not in text),
    )


def _step_declaration(number: int) -> str:
    """Return the declaration of the input of step ``number``."""
    return f"const float step{number}"


def epilogue_of(cx: KernelContext, side_operand: Callable[[int], SideOperand]) -> Epilogue:
    """Return the epilogue of the instruction.

    ``side_operand`` returns how the kernel reads the input at a position.
    """
    relu = ends_in_relu(cx)
    if not cx.instruction.epilogue:
        return Epilogue(RELU) if relu else Epilogue()
    positions = dict.fromkeys(
        position for step in cx.instruction.epilogue for position in step.operands if position >= 0
    )
    names = {position: f"{{{number}}}" for number, position in enumerate(positions, 1)}
    text, lines = RELU if relu else "{0}", []
    for number, step in enumerate(cx.instruction.epilogue):
        lines.append(f"{_step_declaration(number)} = {text};")
        statements, text = _element(cx, step, number, {**names, RESULT: f"step{number}"})
        lines += statements
    return Epilogue(text, tuple(side_operand(position) for position in positions), tuple(lines))


def _element(
    cx: KernelContext, step: Step, number: int, names: Mapping[int, str]
) -> tuple[list[str], str]:
    """Return the statements and the C expression of one step; ``names`` are its operands in C."""
    from smelt.native.kernels import kernel_of

    step_context = KernelContext(
        cx.program, instruction_of(cx.instruction, step), support=cx.support
    )
    kernel = kernel_of(step.op)
    assert kernel is not None
    assert kernel.element is not None  # fusion takes only such operators as steps
    statements, text = kernel.element(step_context)
    operands = [names.get(position, "") for position in step.operands]

    def named(line: str) -> str:
        """Return ``line`` with variables named for this step, and operands filled in."""
        return _WORD.sub(rf"step{number}_\1", line).format(*operands)

    return [named(line) for line in statements], named(text)


def instruction_of(product: Instruction, step: Step) -> Instruction:
    """Return the step as an instruction; the result so far has the slot of the last result."""
    slots = {RESULT: product.outputs[0], ABSENT: -1}
    inputs = tuple(
        slots.get(position, product.inputs[max(position, 0)]) for position in step.operands
    )
    return Instruction(step.op, inputs, product.outputs, step.attributes)


def emit_stores(
    body: Writer,
    epilogue: Epilogue,
    shape: tuple[Dim, Dim],
    sums: tuple[str, Dim],
    to: tuple[str, Dim],
) -> None:
    """Write the epilogue of a block of ``sums`` and its stores to ``to``, which may be ``sums``.

    Both are a C pointer and the number of elements between rows.
    """
    axes = Axis("r", shape[0]), Axis("q", shape[1])
    r, q = (axis.at for axis in axes)
    with body.block(""):
        body.line(f"const float *sums = {sums[0]};")
        body.line(f"float *block = {to[0]};")
        source, block = (
            Buffer(name, FLOAT, (shape[0], each[1]))
            for name, each in (("sums", sums), ("block", to))
        )
        stage = Stage(block, axes, Load(source, (r, q)), epilogue=epilogue.of_stores(r, q))
        print_nest(lower(Algorithm((stage,))), body)


def steps_operator(lines: Sequence[str], text: str) -> Operator:
    """Return statements and a C expression as one operator of the loop language.

    The interpreter of the language cannot compute it, except for a Relu alone.
    """
    if text == RELU and not lines:
        return NOT_BELOW_0
    return Operator("steps", text, _only_c, lines=tuple(lines))


def _only_c(*_: object) -> NoReturn:
    """Raise NotImplementedError: the interpreter has no NumPy form of fused steps."""
    raise NotImplementedError("fused steps exist as C only; the interpreter cannot run them")


def overwritable(instance: Instance) -> tuple[int, ...]:
    """Return the positions of side operands that the result may overwrite.

    They have the shape of the result, and no other operand is the same slot.
    """
    inputs = instance.instruction.inputs
    positions = dict.fromkeys(
        position
        for step in instance.instruction.epilogue
        for position in step.operands
        if position >= 0
    )
    return tuple(
        position
        for position in positions
        if same(instance.shape(position), instance.output_shape())
        and inputs.count(inputs[position]) == 1
    )


def merged_strides(
    operand: Sequence[int], result: Sequence[int], groups: Sequence[Sequence[int]]
) -> tuple[int, ...] | None:
    """Return the stride of ``operand`` for each group of dims of ``result`` merged to one.

    None if the operand's dims do not merge.
    """
    strides = broadcast_strides(operand, result)
    group_strides = []
    for dims in groups:
        merged, size = 0, 1
        for dim in reversed(dims):
            if same(result[dim], 1):
                continue
            if same(size, 1):
                merged = strides[dim]
            elif not same(strides[dim], merged * size):
                return None
            size *= result[dim]
        group_strides.append(merged)
    return tuple(group_strides)


def plus(pointer: str, position: str, stride: Dim) -> str:
    """Return ``pointer + position * stride``, as C."""
    if position == "0" or same(stride, 0):
        return pointer
    return f"{pointer} + {position}" if same(stride, 1) else f"{pointer} + ({position}) * {stride}"
