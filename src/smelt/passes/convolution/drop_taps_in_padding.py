"""Drop the taps of a convolution that meet nothing but its padding.

    before   x: [N,C,16,16] ─> Conv(w: [F,C,3,3], dilations = 18, pads = 18) ─> y
    after    x ─> Conv(w[:, :, 1:2, 1:2]) ─> y

As in pyramids of dilated convolutions over small images: a ninth of the products is left.

Needs    (1) constant weights, finite where they are dropped: infinity times a 0 of the padding is
         NaN; (2) known sizes of the axes that lose taps; (3) explicit pads, none of them negative
         afterwards.
Keeps    (1) a tap that meets an element for one result; one tap an axis at least; (2) weights that
         others read stay for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass


@dataclass(frozen=True)
class _Axis:
    """One spatial axis: the size, how many results, the stride, and of the kernel how many taps,
    how far apart, and the pads."""

    size: int
    results: int
    stride: int
    taps: int
    dilation: int
    begin: int
    end: int

    def meets(self, tap: int) -> bool:
        """Whether ``tap`` meets an element of the input for any result."""
        first = tap * self.dilation - self.begin
        results = range(first, first + self.results * self.stride, self.stride)
        before = len(range(first, min(0, results.stop), self.stride))
        return before < len(results) and results[before] < self.size

    def living(self) -> tuple[int, int]:
        """The first tap that meets an element, and the one after the last; all if none does."""
        alive = [tap for tap in range(self.taps) if self.meets(tap)]
        return (alive[0], alive[-1] + 1) if alive else (0, self.taps)


@rule(op("Conv", var("x"), var("w"), rest=True), min_opset=11, same_shape=True)
def taps_in_padding(m: Match, b: Builder) -> Replacement:
    axes = _axes(m)
    if axes is None:
        return None
    living = [axis.living() for axis in axes]
    if all(alive == (0, axis.taps) for alive, axis in zip(living, axes, strict=True)):  # keeps 1
        return None
    pads = [axis.begin - low * axis.dilation for axis, (low, _) in zip(axes, living, strict=True)]
    pads += [
        axis.end - (axis.taps - high) * axis.dilation
        for axis, (_, high) in zip(axes, living, strict=True)
    ]
    if min(pads) < 0:  # needs 3
        return Miss("what is left would begin inside the input")
    weights = m.array("w", limit=None)
    if weights is None:  # needs 1
        return Miss("the weights are no constant")
    kept = (slice(None), slice(None), *(slice(low, high) for low, high in living))
    dropped = np.ones(weights.shape, np.bool_)
    dropped[kept] = False
    if not np.isfinite(weights[dropped].astype(np.float32)).all():
        return Miss("a weight that meets only padding is not finite")
    return _cropped(m, b, weights[kept], pads)  # keeps 2


def _cropped(m: Match, b: Builder, weights: np.ndarray, pads: list[int]) -> ir.Value:
    attributes = {a.name: a for a in m.root.attributes.values()}
    attributes["pads"] = ir.AttrInt64s("pads", pads)
    attributes["kernel_shape"] = ir.AttrInt64s("kernel_shape", list(weights.shape[2:]))
    spacing = opset.attribute(m.root, "dilations", m.opset)
    if spacing is not None:
        alone = [1 if n == 1 else d for n, d in zip(weights.shape[2:], spacing, strict=True)]
        attributes["dilations"] = ir.AttrInt64s("dilations", alone)
    inputs = (m["x"], b.constant(np.ascontiguousarray(weights)), *m.root.inputs[2:])
    return b.add(ir.Node("", "Conv", inputs, list(attributes.values())))[0]


def _axes(m: Match) -> list[_Axis] | None:
    """The spatial axes; None if something of one is not known, or nothing is padded."""
    pads = opset.attribute(m.root, "pads", m.opset)
    shapes = [value.shape for value in (m["x"], m["w"], m.root.outputs[0])]
    if not pads or not any(pads) or None in shapes:
        return None
    if opset.attribute(m.root, "auto_pad", m.opset) not in (None, "NOTSET"):  # needs 3
        return None
    image, kernel, result = (shape.dims[2:] for shape in shapes if shape is not None)
    sizes = [*image, *kernel, *result]
    rank = len(image)
    if not all(isinstance(size, int) and size > 0 for size in sizes):  # needs 2
        return None
    ones = [1] * rank
    strides: Sequence[int] = opset.attribute(m.root, "strides", m.opset) or ones
    spacing: Sequence[int] = opset.attribute(m.root, "dilations", m.opset) or ones
    rows = zip(image, result, strides, kernel, spacing, pads[:rank], pads[rank:], strict=True)
    return [_Axis(*row) for row in rows]


drop_taps_in_padding = rule_pass(
    "drop_taps_in_padding",
    __doc__,
    [taps_in_padding],
    exactness=rounding(4, "zeros are no longer added, and kernels sum in other blocks"),
)
