"""Replace shapes computed at run time by constants with 0, -1 and 1.

    before   x: B,S,768 ─> Reshape(Concat(Shape(x)[0], Shape(x)[1], 12, 64)) ─> y
    after    x: B,S,768 ─> Reshape([0, 0, 12, 64]) ─> y

In a Reshape, a dim that x has at the same position becomes 0, and one other unknown dim becomes -1;
an existing -1 for a known dim is replaced by the number. A Reshape with several unknown dims that
only adds or drops dims of size 1 becomes an Unsqueeze or Squeeze (the variance along a middle axis,
as PyTorch's exporter writes it). In an Expand, a dim that x has at the same position becomes 1. A
Resize whose changed sizes are numbers gets scales instead of sizes.

Needs    (1) a shape whose elements are inferred through Shape, Gather, Slice, Concat and
         arithmetic.
Keeps    (1) a shape with -1 next to a dim that may be 0, unless it had the -1 before: with an empty
         tensor -1 is ambiguous; a literal 0 with ``allowzero``, which does not copy a dim; (2) a
         Resize that crops or keeps the aspect ratio; (3) sizes that no scales give exactly, unless
         the Resize names axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.node_inputs import optional_input
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import Dim, same_dim
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.simplify.merge_consecutive_reshapes import inserted

NO_SCALES = (
    "no scales give these sizes, and ONNX Runtime, where it moves a Transpose below a Resize with "
    "sizes of some axes, permutes these like sizes of all axes, and fails"
)


@rule(op("Reshape", var("x"), var("shape")), same_shape=True)
def symbolic_reshape(m: Match, b: Builder) -> Replacement:
    """Replace the computed target of a Reshape by a constant.

    If no constant can state it, replace the Reshape by Unsqueeze or Squeeze.
    """
    if m.constants.get(m["shape"]) is not None:
        return None
    elements = b.shapes.elements(m["shape"])
    if elements is None:  # needs 1
        return Miss("inference does not know the elements of the shape")
    zero_is_zero = m.root.attributes.get_int("allowzero", 0) == 1
    result = m.root.outputs[0].shape
    if result is not None and len(result) == len(elements):
        elements = [_known_dim(element, dim) for element, dim in zip(elements, result, strict=True)]
    target = reshape_operand(m["x"].shape, elements, zero_is_zero)
    if target is not None:
        return b.op("Reshape", m["x"], b.const_i64(target))
    x, y = m["x"], m.root.outputs[0]
    for op_type, fewer, more in (("Unsqueeze", x, y), ("Squeeze", y, x)):
        axes = inserted(fewer.shape, more.shape)
        if axes:
            return b.op(op_type, x, b.const_i64(axes))
    return Miss("the result has a dim of size 0, or several dims that are unknown")


@rule(op("Expand", var("x"), var("shape")), same_shape=True)
def symbolic_expand(m: Match, b: Builder) -> Replacement:
    """Replace the computed shape of an Expand by a constant."""
    if m.constants.get(m["shape"]) is not None:
        return None
    elements, source = b.shapes.elements(m["shape"]), m["x"].shape
    if elements is None:
        return Miss("inference does not know the elements of the shape")
    if source is None:
        return Miss("the rank of the input is unknown")
    raised = len(elements) - len(source)
    target: list[int] = []
    for index, element in enumerate(elements):
        if isinstance(element, int):
            target.append(element)
        elif index >= raised and same_dim(source[index - raised], element):
            target.append(1)
        else:
            return Miss("an unknown dim of the result is not proved equal to the dim of the input")
    return b.op("Expand", m["x"], b.const_i64(target))


@rule(op("Resize", var("x"), rest=True), same_shape=True)
def symbolic_resize(m: Match, b: Builder) -> Replacement:
    """Replace the computed sizes of a Resize by constants, if only axes of known sizes change.

    The constants are scales of all axes. If scales would round to other sizes, they are the sizes
    of the changed axes; this needs the attribute ``axes``.
    """
    node, source = m.root, m["x"].shape
    sizes = optional_input(node, 3)
    if sizes is None or source is None or m.constants.get(sizes) is not None:
        return None
    if node.attributes.get_string("keep_aspect_ratio_policy", "stretch") != "stretch":
        return Miss("keep_aspect_ratio_policy of the Resize is not stretch")  # keeps 2
    if node.attributes.get_string("coordinate_transformation_mode") == "tf_crop_and_resize":
        return Miss("coordinate_transformation_mode of the Resize is tf_crop_and_resize")
    elements = b.shapes.elements(sizes)
    attribute = node.attributes.get("axes")
    axes = (
        [axis % len(source) for axis in attribute.as_ints()]
        if attribute
        else list(range(len(source)))
    )
    if elements is None or len(elements) != len(axes):  # needs 1
        return Miss("inference does not know the elements of the sizes")
    changed = [
        (axis, size)
        for axis, size in zip(axes, elements, strict=True)
        if not same_dim(source[axis], size)
    ]
    new_sizes = [size for _, size in changed if isinstance(size, int)]
    if not changed:
        return None
    if len(new_sizes) < len(changed):
        return Miss("an unknown size of the result is not proved equal to the dim of the input")
    other_attributes = [attr for attr in node.attributes.values() if attr.name != "axes"]
    scales = _scales(source, changed)
    if scales is not None:
        inputs = [m["x"], None, b.constant(scales)]
        return b.add(ir.Node("", "Resize", inputs, other_attributes))[0]
    if attribute is None:
        return Miss(NO_SCALES)  # keeps 3
    inputs = [m["x"], None, None, b.const_i64(new_sizes)]
    changed_axes = ir.AttrInt64s("axes", [axis for axis, _ in changed])
    return b.add(ir.Node("", "Resize", inputs, [*other_attributes, changed_axes]))[0]


def _scales(source: ir.Shape, changed: Sequence[tuple[int, Dim]]) -> np.ndarray | None:
    """Return scales for all axes of ``source`` that give the axes in ``changed`` their new sizes.

    A scale is the quotient of the sizes in float32, as a runtime computes it. None if a size is
    unknown, or if the old size times the scale, rounded down, is not the new size.
    """
    scales = np.ones(len(source), np.float32)
    for axis, after in changed:
        before = source[axis]
        if not isinstance(before, int) or not isinstance(after, int) or not before:
            return None
        scales[axis] = np.float32(after) / np.float32(before)
        exact, rounded = float(scales[axis]) * before, scales[axis] * np.float32(before)
        if math.floor(exact) != after or math.floor(rounded) != after:
            return None
    return scales


def _known_dim(element: Dim, dim: Dim) -> Dim:
    """Return ``element`` of a target shape, or the inferred ``dim`` of the result if it says more.

    It says more if ``element`` is no number, or is a -1 for a dim that is one.
    """
    if not isinstance(element, int) or (element == -1 and isinstance(dim, int)):
        return dim
    return element


def reshape_operand(
    source: ir.Shape | None, elements: Sequence[Dim], zero_is_zero: bool
) -> list[int] | None:
    """Return the constant target of a Reshape from ``source`` to ``elements``; None if there is
    none.

    ``zero_is_zero``: a target of 0 does not copy a dim (``allowzero``).
    """
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
    others = [n for n in target if n != -1]
    return target if inferred == 1 and all(n > 0 for n in others) else None  # keeps 1


remove_symbolic_reshape = rule_pass(
    "remove_symbolic_reshape",
    __doc__,
    [symbolic_reshape, symbolic_expand, symbolic_resize],
    exactness=EXACT,
    source="Core ML MIL: common::remove_symbolic_reshape",
)
