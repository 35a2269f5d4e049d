"""Replace shapes computed at run time by constants where 0, -1 and 1 can say the same.

    before   x: B,S,768 ─> Reshape(Concat(Shape(x)[0], Shape(x)[1], 12, 64)) ─> y
    after    x: B,S,768 ─> Reshape([0, 0, 12, 64]) ─> y

In a Reshape a dim that x has at the same place becomes 0, and one other unknown dim becomes -1.
In an Expand a dim that x has at the same place becomes 1.

Needs    (1) a shape that inference follows through Shape, Gather, Slice, Concat and arithmetic.
Keeps    (1) a shape where -1 would stand beside another unknown dim, unless it already did: with
         an empty tensor -1 is ambiguous. With ``allowzero`` a literal 0, which means something
         else.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.shapes import Dim, same_dim
from smelt.passes.base import EXACT, rule_pass


@rule(op("Reshape", var("x"), var("shape")), same_shape=True)
def symbolic_reshape(m: Match, b: Builder) -> Replacement:
    if m.constants.get(m["shape"]) is not None:
        return None
    elements = b.shapes.elements(m["shape"])
    if elements is None:  # needs 1
        return Miss("inference does not know the elements of the shape")
    zero_is_zero = m.root.attributes.get_int("allowzero", 0) == 1
    result = m.root.outputs[0].shape
    if result is not None and len(result) == len(elements):
        elements = [n if isinstance(n, int) else d for n, d in zip(elements, result, strict=True)]
    target = reshape_operand(m["x"].shape, elements, zero_is_zero)
    if target is None:
        return Miss("no constant says the shape")
    return b.op("Reshape", m["x"], b.const_i64(target))


@rule(op("Expand", var("x"), var("shape")), same_shape=True)
def symbolic_expand(m: Match, b: Builder) -> Replacement:
    if m.constants.get(m["shape"]) is not None:
        return None
    elements, source = b.shapes.elements(m["shape"]), m["x"].shape
    if elements is None or source is None:
        return Miss("inference does not know the elements of the shape")
    raised = len(elements) - len(source)
    target: list[int] = []
    for index, element in enumerate(elements):
        if isinstance(element, int):
            target.append(element)
        elif index >= raised and same_dim(source[index - raised], element):
            target.append(1)
        else:
            return Miss("an unknown dim is not one of the input")
    return b.op("Expand", m["x"], b.const_i64(target))


def reshape_operand(
    source: ir.Shape | None, elements: Sequence[Dim], zero_is_zero: bool
) -> list[int] | None:
    """The constant that does as ``elements`` do in a Reshape from ``source``; None if none does."""
    target: list[int] = []
    for index, element in enumerate(elements):
        if isinstance(element, int):
            if element == 0 and zero_is_zero:
                return None
            target.append(element)
        elif source is not None and index < len(source) and same_dim(source[index], element):
            target.append(0)
        else:
            target.append(-1)
    inferred = target.count(-1)
    if inferred == 0 or inferred == sum(element == -1 for element in elements):
        return target
    beside = [n for n in target if n != -1]
    return target if inferred == 1 and all(n > 0 for n in beside) else None  # keeps 1


remove_symbolic_reshape = rule_pass(
    "remove_symbolic_reshape",
    __doc__,
    [symbolic_reshape, symbolic_expand],
    exactness=EXACT,
    source="Core ML MIL: common::remove_symbolic_reshape",
)
