"""Fuse rotary embeddings that rotate neighbours by products and stack the two results.

This is a product of complex numbers: (x1 + i x2) (cos + i sin). The neighbours are every second
element of a head, or the two elements of a last dim that was split off.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import OneOf, Op, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_dim, same_shape
from smelt.passes.attention.rotary_operator import TYPES, rotated
from smelt.passes.attention.rotary_pairs import (
    is_along_last,
    is_interleaved,
    is_of_last,
    numbers_of,
)

_pairs = var("pairs")


def _part(name: str, output: int) -> OneOf:
    """Match the elements ``output`` (0: first, 1: second) of all pairs, by Slice or Split.

    A Squeeze, called ``"low alone"`` or ``"high alone"``, may drop the last dim of pairs that are a
    dim of their own. Without it, the part keeps a last dim of 1.
    """
    cuts = (
        op("Slice", _pairs, rest=True, name=name),
        op("Split", _pairs, rest=True, output=output, name=name),
    )
    return one_of(*(op("Squeeze", cut, rest=True, name=f"{name} alone") for cut in cuts), *cuts)


def _times(part: OneOf, factor: str) -> Op:
    """Match a product of ``part`` and the cosines or sines called ``factor``."""
    return op("Mul", part, var(factor), commutative=True)


_low, _high = _part("low", 0), _part("high", 1)
_first = op("Sub", _times(_low, "cos"), _times(_high, "sin"))
_second = op("Add", _times(_high, "cos"), _times(_low, "sin"), commutative=True)
# Results without a last dim are unsqueezed and stacked. Results that keep a last dim of 1, because
# their parts do, are joined along it: "first" and "second" are unbound then.
_stack = one_of(
    op(
        "Concat",
        op("Unsqueeze", _first, rest=True, name="first"),
        op("Unsqueeze", _second, rest=True, name="second"),
        name="stack",
    ),
    op("Concat", _first, _second, name="stack"),
)


@rule(op("Reshape", _stack, rest=True))
def products_of_neighbours(m: Match, b: Builder) -> Replacement:
    """Replace the stacked products by an interleaved RotaryEmbedding."""
    pairs = m["pairs"]
    if pairs.shape is None:
        return Miss("the rank of x is unknown")
    if pairs.dtype not in TYPES:
        return Miss(f"RotaryEmbedding of {pairs.dtype} has no kernel")
    if not _parts_are_pairs(m):
        return Miss("the two parts are not neighbours along the last axis, stacked in order")
    x, cos, sin = pairs, m["cos"], m["sin"]
    if len(pairs.shape) == 5:
        # Neighbours are a last dim of 2. RotaryEmbedding wants them side by side in the head.
        pairs_per_head = pairs.shape[3]
        if not isinstance(pairs_per_head, int):
            return Miss("the head size is not constant")
        x = b.op("Reshape", pairs, b.const_i64([0, 0, 0, 2 * pairs_per_head]))
    if m.get("first") is None:
        # The parts keep a last dim of 1, so the angles have one; RotaryEmbedding takes angles
        # without it.
        if any(angle.shape is None or angle.shape[-1:] != (1,) for angle in (cos, sin)):
            return Miss("the last dim of the cosines or sines is not 1")
        cos, sin = (b.op("Squeeze", angle, b.const_i64([-1])) for angle in (cos, sin))
    if not _broadcasts(x, m["stack"]):
        return Miss("the angles broadcast x to another shape")
    rotary = rotated(x, m, b, cos, sin, True)
    if isinstance(rotary, Miss) or same_shape(x.shape, m.root.outputs[0].shape):
        return rotary
    target = m.constants.ints(m.root.inputs[1])
    if target is None:
        return Miss("the shape given to the Reshape is not constant")
    # A 0 copies a dim of the Reshape's input. Beyond axis 2, the dims of ``rotary`` are not those
    # of the stack that the Reshape read before.
    if 0 in target[3:]:
        return Miss("the shape given to the Reshape has a 0 behind axis 2")
    return b.op("Reshape", rotary, b.const_i64(target))


def _parts_are_pairs(m: Match) -> bool:
    """True if the parts are the first and second elements of all pairs, stacked in that order."""
    pairs, parts = m["pairs"], (m["low"], m["high"])
    unsqueezes = [m.node(name) for name in ("first", "second") if m.get(name) is not None]
    squeezes = [m.node(name) for name in ("low alone", "high alone") if m.get(name) is not None]
    if not is_along_last(m.node("stack")):
        return False
    if not all(is_of_last(node, m.constants) for node in (*unsqueezes, *squeezes)):
        return False
    if pairs.shape is not None and len(pairs.shape) == 4:
        if not unsqueezes or squeezes:
            return False
        return is_interleaved(pairs, *parts, pairs, m.constants) is True
    if pairs.shape is None or len(pairs.shape) != 5 or len(squeezes) != len(unsqueezes):
        return False
    indices = [numbers_of(part, pairs, m.constants) for part in parts]
    return pairs.shape[-1] == 2 and indices == [range(1), range(1, 2)]


def _broadcasts(x: ir.Value, stack: ir.Value) -> bool:
    """True if the stacked products have the leading dims of x, so that the angles broadcast to
    x."""
    if x.shape is None or stack.shape is None or len(stack.shape) != 5:
        return False
    return all(map(same_dim, x.shape[:3], stack.shape[:3]))
