"""Fold a Cast of constant floats to integers if a Where drops every element that has no integer.

T5 numbers distant positions by a logarithm, which is -inf for position 0, and casts it to integers.
A Where then selects the position itself for near positions, among them position 0.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import const, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.walk import producer_of

ELEMENTWISE = ("Abs", "Add", "Max", "Min", "Mul", "Neg", "Sub")
"""Operators whose result at one place depends on their operands at this place only."""

INTEGERS = (ir.DataType.INT32, ir.DataType.INT64)


@rule(op("Where", const(name="mask", limit=None), var("a"), var("b")), needs=("Cast",))
def unselected_cast(m: Match, b: Builder) -> Replacement:
    """Replace a constant cast to integers by these integers, and by 0 where it is out of range."""
    mask = m.array("mask", limit=None)
    for place, selected in ((1, True), (2, False)):
        cast_and_chain = _cast_above(m.root.inputs[place], m)
        if cast_and_chain is None or mask is None:
            continue
        cast, chain = cast_and_chain
        numbers = m.array(cast.inputs[0], limit=None)
        if numbers is None or not _have_shape(numbers.shape, [mask, m.root, cast, *chain]):
            continue
        outside = ~_is_in_range(numbers, cast.outputs[0].dtype)
        if not outside.any():  # const-elimination folds the Cast
            continue
        if (outside & (mask == selected)).any():
            return Miss("a selected element is cast out of range")
        operands = list(m.root.inputs)
        operands[place] = _rebuilt_chain(b, cast, np.where(outside, 0, numbers), chain)
        return b.op("Where", *operands)
    return None


def _cast_above(value: ir.Value | None, m: Match) -> tuple[ir.Node, list[ir.Node]] | None:
    """Return the Cast of a constant to integers from which ``value`` is computed, and the
    elementwise operators in between, that nearest to the Cast first.

    Each of these operators has one computed operand; its others are constants. None if no Cast of
    a constant is found.
    """
    chain: list[ir.Node] = []
    while (node := producer_of(value, *ELEMENTWISE)) is not None:
        computed = [operand for operand in node.inputs if m.array(operand, limit=None) is None]
        if len(computed) != 1:
            return None
        chain.insert(0, node)
        value = computed[0]
    cast = producer_of(value, "Cast")
    if cast is None or cast.outputs[0].dtype not in INTEGERS:
        return None
    return cast, chain


def _have_shape(shape: tuple[int, ...], holders: list[np.ndarray | ir.Node]) -> bool:
    """True if all arrays and all first results of nodes have ``shape``."""
    shapes = [
        each.shape if isinstance(each, np.ndarray) else each.outputs[0].shape for each in holders
    ]
    return all(each is not None and tuple(each) == shape for each in shapes)


def _is_in_range(numbers: np.ndarray, dtype: ir.DataType | None) -> np.ndarray:
    """Return an array that is true where ``numbers`` fit into the integers ``dtype``; NaN does not
    fit.
    """
    assert dtype is not None
    limits = np.iinfo(dtype.numpy())
    with np.errstate(invalid="ignore"):
        # The largest integer may round up to one more as a float, hence the strict comparison.
        return np.logical_and(numbers >= limits.min, numbers < float(limits.max))


def _rebuilt_chain(
    b: Builder, cast: ir.Node, numbers: np.ndarray, chain: list[ir.Node]
) -> ir.Value:
    """Return the result of ``chain`` for ``numbers`` cast to integers."""
    dtype = cast.outputs[0].dtype
    assert dtype is not None
    old, new = cast.outputs[0], b.constant(numbers.astype(dtype.numpy()))
    for node in chain:
        operands = [new if value is old else value for value in node.inputs]
        old, new = node.outputs[0], b.like(node, *operands)
    return new
