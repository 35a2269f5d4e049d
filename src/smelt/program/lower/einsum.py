"""Lowers Einsum, ONNX's and smelt's, to DotGenerals and steps that prepare their operands.

``plan_of`` splits an equation into steps with one or two operands, such as a diagonal, a reduction
or a dot. Here each step becomes an instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, replace
from typing import Any

import onnx_ir as ir

from smelt.ir.same_shape import same_dim
from smelt.operators.contraction import (
    Equation,
    parse,
    sizes_of,
    with_labels_for_ones,
)
from smelt.operators.contraction_paths import Path, find_path
from smelt.operators.contraction_steps import (
    COMBINE,
    DOT,
    REDUCE,
    SQUEEZE,
    Step,
    plan_of,
)
from smelt.operators.contraction_steps import (
    DIAGONAL as EQUAL_PLACES,
)
from smelt.operators.dot_general import may_be_empty
from smelt.operators.einsum import OPERATOR, path_in
from smelt.operators.semiring import SEMIRINGS, Semiring, semiring_of
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import DIAGONAL, Dim
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.extension import fitting_attributes
from smelt.program.lower.pairs import on_pairs, product, real_dot
from smelt.program.lower.registry import lowers


@lowers("smelt::Einsum")
def einsum_over(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit an einsum over a semiring, by the contraction path of the node, if it has one."""
    attributes = fitting_attributes(cx, node, OPERATOR)
    slots = cx.inputs(node)
    pairs = bool(attributes["pairs"])
    equation = equation_of(cx, str(attributes["equation"]), slots, pairs=pairs)
    semiring = semiring_of(attributes["semiring"])
    contract(cx, slots, equation, semiring, node.outputs[0], path_in(attributes), pairs=pairs)


@lowers("Einsum")
def einsum(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit an einsum over sums of products."""
    text = node.attributes["equation"].as_string()
    slots = cx.inputs(node)
    equation = equation_of(cx, text, slots)
    contract(cx, slots, equation, SEMIRINGS["sum_product"], node.outputs[0])


def equation_of(
    cx: ProgramBuilder, text: str, slots: Sequence[int], *, pairs: bool = False
) -> Equation:
    """Return the parsed equation for the operands in ``slots``; raises Unsupported E201."""
    try:
        return parse(text, [len(cx.shape(slot)) - pairs for slot in slots])
    except ValueError as error:
        raise cx.refuse(str(error)) from error


def contract(
    cx: ProgramBuilder,
    slots: Sequence[int],
    equation: Equation,
    semiring: Semiring,
    output: ir.Value,
    path: Path | None = None,
    *,
    pairs: bool = False,
) -> None:
    """Emit the steps of ``equation`` on the operands in ``slots``; ``output`` gets the result.

    ``path`` is the order of the contractions; None searches for a cheap one. With ``pairs``, the
    last dim of each operand holds the real and the imaginary part of complex numbers.
    """
    shapes = [cx.shape(slot)[: -1 if pairs else None] for slot in slots]
    try:
        equation = with_labels_for_ones(equation, shapes)
    except ValueError as error:
        raise cx.refuse_size(str(error)) from error
    sizes = sizes_of(equation.terms, shapes)
    path = find_path(equation, sizes) if path is None else path
    steps, result = plan_of(equation, path, sizes, small_right=pairs)
    if result < len(slots):
        cx.alias(output, slots[result])
        return
    numbered, target = list(slots), cx.define(output)
    for number, step in enumerate(steps, len(slots)):
        shape = [sizes[label] for label in step.labels]
        read = tuple(numbered[i] for i in step.inputs)
        into = target if number == result else -1
        if pairs:
            step = on_pairs(step, tuple(len(cx.shape(slot)) - 1 for slot in read))  # noqa: PLW2901
            numbered.append(_emit_pairs(cx, step, read, [*shape, 2], semiring, into))
        else:
            numbered.append(_emit(cx, step, read, shape, semiring, into))


def _emit_pairs(
    cx: ProgramBuilder,
    step: Step,
    read: tuple[int, ...],
    shape: Sequence[Dim],
    semiring: Semiring,
    target: int,
) -> int:
    """Emit ``step`` on complex numbers and return the slot of its result: ``target``, or a new one
    if that is negative.

    A dot becomes a real dot with 2x2 matrices (see ``pairs``), an elementwise product two products
    and a sum. All other steps treat both parts alike.
    """
    if step.op == DOT:
        lhs, rhs = read
        matrices, dims = real_dot(cx, lhs, rhs, DotDims(*step.dims))
        read, step = (lhs, matrices), replace(step, dims=astuple(dims))
    if step.op != COMBINE:
        return _emit(cx, step, read, shape, semiring, target)
    a, b = (
        _aligned(cx, *slot_and_dims, len(shape))
        for slot_and_dims in zip(read, step.dims, strict=True)
    )
    addends = product(cx, a, b)
    if target < 0:
        return cx.emit_new("Add", addends, shape)
    cx.emit("Add", addends, (target,))
    return target


def _emit(
    cx: ProgramBuilder,
    step: Step,
    read: tuple[int, ...],
    shape: Sequence[Dim],
    semiring: Semiring,
    target: int,
) -> int:
    """Emit ``step`` and return the slot of its result: ``target``, or a new one if that is
    negative.

    A reduction over no elements gives the zero of the semiring, for ``max_plus`` -inf. If an axis
    is empty, the result is that zero. If an open size may be 0, the result is combined with it.
    """
    if step.op == COMBINE:
        read = tuple(
            _aligned(cx, *slot_and_dims, len(shape))
            for slot_and_dims in zip(read, step.dims, strict=True)
        )
    op, attributes = _instruction(step, semiring)
    if op == DIAGONAL:
        _check_diagonal(cx, read[0], step)
    if step.op == REDUCE and may_be_empty(cx.shape(read[0]), step.axes):
        zero = cx.constant(semiring.zero_in(cx.dtype(read[0]).numpy()), "zero")
        if 0 in (cx.shape(read[0])[axis] for axis in step.axes):
            read, op, attributes = (zero,), "Expand", {}
        elif semiring.bound is not None:
            read = (cx.emit_new(op, read, shape, **attributes), zero)
            op, attributes = semiring.bound, {}
    if target < 0:
        return cx.emit_new(op, read, shape, **attributes)
    cx.emit(op, read, (target,), **attributes)
    return target


def _aligned(cx: ProgramBuilder, slot: int, dims: Sequence[int], rank: int) -> int:
    """Return ``slot`` reshaped so that it broadcasts in a result of ``rank`` dims.

    Its dims are those at the positions ``dims`` of the result; the others have size 1.
    """
    sizes: list[Dim] = [1] * rank
    for dim, size in zip(dims, cx.shape(slot), strict=True):
        sizes[dim] = size
    return slot if len(dims) == rank else cx.emit_new("Reshape", (slot,), sizes)


def _instruction(step: Step, semiring: Semiring) -> tuple[str, dict[str, Any]]:
    """Return the operator and attributes of the instruction for ``step``."""
    if step.op == DOT:
        return "DotGeneral", {"dims": DotDims(*step.dims), "semiring": str(semiring)}
    if step.op == COMBINE:
        return semiring.times, {}
    if step.op == REDUCE:
        return semiring.reduction, {"axes": step.axes, "keepdims": 0}
    if step.op == SQUEEZE:
        return "Reshape", {}
    if step.op == EQUAL_PLACES:
        return DIAGONAL, {"axes": step.axes}
    return "Transpose", {"perm": step.axes}


def _check_diagonal(cx: ProgramBuilder, slot: int, step: Step) -> None:
    """Refuse a diagonal of dims whose sizes are not known to be equal."""
    dims = cx.shape(slot)
    for dim, axis in zip(dims, step.axes, strict=True):
        if not same_dim(dim, dims[step.axes.index(axis)]):
            raise cx.refuse_size(
                f"the sizes of the diagonal of {dim} rows are not known to be equal"
            )
