"""Drop the kernel taps of a convolution that only ever multiply padding.

    before   x: [N,C,16,16] ─> Conv(w: [F,C,3,3], dilations = 18, pads = 18) ─> y
    after    x ─> Conv(w[:, :, 1:2, 1:2]) ─> y

Pyramids of dilated convolutions over small images have such taps; in the example a ninth of the
products remains.

Needs    (1) constant weights, finite in the dropped taps: infinity times a padded 0 is NaN;
         (2) known sizes of the axes that lose taps; (3) explicit pads that stay at least 0.
Keeps    (1) a tap that reads an element of x for some result, and one tap for each axis; (2) the
         old weights for their other readers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import static_shape
from smelt.passes.base import rounding, rule_pass
from smelt.passes.convolution.padded_axis import PaddedAxis
from smelt.passes.tensors.stack import dims_of


@rule(op("Conv", var("x"), var("w"), rest=True), min_opset=11, same_shape=True)
def padded_taps(m: Match, b: Builder) -> Replacement:
    """Replace the convolution by one with fewer taps and smaller pads."""
    pads_before = opset.attribute(m.root, "pads", m.opset)
    if not pads_before or not any(pads_before):
        return None
    if opset.attribute(m.root, "auto_pad", m.opset) not in (None, "NOTSET"):  # needs 3
        return None
    taps_and_pads = _taps_to_keep(m, pads_before)
    if taps_and_pads is None:
        return None
    taps, pads = taps_and_pads
    if min(pads) < 0:
        return Miss("the pads would become negative")
    weights = m.array("w", limit=None)
    if weights is None:  # needs 1
        return Miss("the weights are not constant")
    spatial = (slice(kept_taps.start, kept_taps.stop) for kept_taps in taps)
    kept = (slice(None), slice(None), *spatial)
    dropped = np.ones(weights.shape, np.bool_)
    dropped[kept] = False
    if not np.isfinite(weights[dropped].astype(np.float32)).all():
        return Miss("a weight that meets only padding is not finite")
    return _cropped(m, b, weights[kept], pads)  # keeps 2


def _taps_to_keep(m: Match, pads_before: Sequence[int]) -> tuple[list[range], list[int]] | None:
    """Return the taps to keep for each axis, and the new pads; None if all taps stay.

    A tap dropped at either end lessens the pads at that end by ``dilation``, so the windows of the
    result stay where they are.
    """
    image, result = (dims_of(value) for value in (m["x"], m.root.outputs[0]))
    weight = static_shape(m["w"])
    if image is None or result is None or weight is None:
        return None
    kernel = weight[2:]
    rank = len(kernel)
    ones, pads = [1] * rank, list(pads_before)
    strides: Sequence[int] = opset.attribute(m.root, "strides", m.opset) or ones
    dilations: Sequence[int] = opset.attribute(m.root, "dilations", m.opset) or ones
    taps = []
    for axis_number, (size, tap_count, result_size) in enumerate(
        zip(image[2:], kernel, result[2:], strict=True)
    ):
        kept_taps = range(tap_count)
        if isinstance(size, int) and isinstance(result_size, int):  # needs 2
            axis = PaddedAxis(
                size,
                result_size,
                strides[axis_number],
                tap_count,
                dilations[axis_number],
                pads[axis_number],
            )
            kept_taps = axis.useful_taps() or kept_taps  # keeps 1
        taps.append(kept_taps)
        pads[axis_number] -= kept_taps.start * dilations[axis_number]
        pads[axis_number + rank] -= (tap_count - kept_taps.stop) * dilations[axis_number]
    return (taps, pads) if pads != list(pads_before) else None


def _cropped(m: Match, b: Builder, weights: np.ndarray, pads: list[int]) -> ir.Value:
    """Return the convolution with the cropped weights and new pads.

    An axis with a single tap gets a dilation of 1.
    """
    attributes = {a.name: a for a in m.root.attributes.values()}
    attributes["pads"] = ir.AttrInt64s("pads", pads)
    attributes["kernel_shape"] = ir.AttrInt64s("kernel_shape", list(weights.shape[2:]))
    dilations = opset.attribute(m.root, "dilations", m.opset)
    if dilations is not None:
        new_dilations = [
            1 if taps == 1 else dilation
            for taps, dilation in zip(weights.shape[2:], dilations, strict=True)
        ]
        attributes["dilations"] = ir.AttrInt64s("dilations", new_dilations)
    inputs = (m["x"], b.constant(np.ascontiguousarray(weights)), *m.root.inputs[2:])
    return b.add(ir.Node("", "Conv", inputs, list(attributes.values())))[0]


drop_taps_in_padding = rule_pass(
    "drop_taps_in_padding",
    __doc__,
    [padded_taps],
    exactness=rounding(4, "zeros are no longer added, and kernels sum in other blocks"),
)
