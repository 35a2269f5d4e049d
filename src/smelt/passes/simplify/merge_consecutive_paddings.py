"""Merge a Pad of a Pad into one.

    before   x ─> Pad(p, c) ─> Pad(q, c) ─> y              after   x ─> Pad(p + q, c) ─> y

Needs    (1) constant, nonnegative pads, constant axes, a known rank, and the same mode. With
         ``constant``, the same padding value, bit for bit. With ``reflect`` and ``wrap``, different
         axes, because the second Pad must not read elements of the first. ``edge`` always merges.
Keeps    (1) a first Pad that is an output or has other readers; (2) pads that crop, because
         cropping after padding differs from cropping before.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import EXACT, rule_pass


@rule(
    op("Pad", op("Pad", var("x"), rest=True, name="inner"), rest=True),  # keeps 1
    min_opset=11,
    same_shape=True,
)
def pad_of_pad(m: Match, b: Builder) -> Replacement:
    """Replace two Pads by one with the sum of their pads."""
    first, second = m.node("inner"), m.root
    modes = [opset.attribute(node, "mode", m.opset) for node in (first, second)]
    if modes[0] != modes[1]:
        return Miss("the two Pads have different modes")
    inner, outer = _pads(m, first), _pads(m, second)
    if inner is None or outer is None:  # needs 1
        return Miss("the pads of one Pad are not known for each axis")
    if min((*inner, *outer), default=0) < 0:  # keeps 2
        return Miss("a number in the pads is negative")
    if modes[0] == "constant" and not _same_value(m, first, second):
        return Miss("the two Pads are not proved to insert the same value")
    rank = len(inner) // 2
    if modes[0] in ("reflect", "wrap") and _axes(inner, rank) & _axes(outer, rank):
        return Miss(f"both Pads extend the same axis with {modes[0]}")
    total = [p + q for p, q in zip(inner, outer, strict=True)]
    return b.like(second, m["x"], b.const_i64(total), _input(second, 2))


def _pads(m: Match, node: ir.Node) -> list[int] | None:
    """Return the pads of every axis, begins before ends; None if they are unknown."""
    x, pads = m["x"], m.ints(_input(node, 1))
    if x.shape is None or pads is None:
        return None
    rank, axes = len(x.shape), m.ints(_input(node, 3))
    if _input(node, 3) is None:
        axes = tuple(range(rank))
    if axes is None or any(not -rank <= axis < rank for axis in axes):
        return None
    padded_axes = [axis % rank for axis in axes]
    if len(pads) != 2 * len(padded_axes) or len(set(padded_axes)) != len(padded_axes):
        return None
    pads_of_all_axes = [0] * (2 * rank)
    for index, axis in enumerate(padded_axes):
        pads_of_all_axes[axis] = pads[index]
        pads_of_all_axes[rank + axis] = pads[index + len(padded_axes)]
    return pads_of_all_axes


def _input(node: ir.Node, index: int) -> ir.Value | None:
    """Return input ``index`` of ``node``; None if it is absent."""
    return node.inputs[index] if len(node.inputs) > index else None


def _axes(pads: list[int], rank: int) -> set[int]:
    """Return the axes that are padded on any side."""
    return {index % rank for index, pad in enumerate(pads) if pad}


def _same_value(m: Match, first: ir.Node, second: ir.Node) -> bool:
    """True if both pad with the same bits; an absent value is 0."""
    padding_values = [_input(node, 2) for node in (first, second)]
    if padding_values[0] is padding_values[1]:
        return True
    bits = []
    for value in padding_values:
        array = m.array(value)
        if value is not None and (array is None or array.size != 1):
            return False
        bits.append(array.tobytes() if array is not None else b"")
    longest = max(map(len, bits))
    return bits[0].ljust(longest, b"\0") == bits[1].ljust(longest, b"\0")


merge_consecutive_paddings = rule_pass(
    "merge_consecutive_paddings",
    __doc__,
    [pad_of_pad],
    exactness=EXACT,
    source="Core ML MIL: common::merge_consecutive_paddings",
)
