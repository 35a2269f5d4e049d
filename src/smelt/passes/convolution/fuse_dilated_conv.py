"""Turn space-to-batch, a convolution and batch-to-space into one dilated convolution.

    before   x ─> Pad ─> space to batch (b) ─> Conv ─> batch to space (b) ─> Slice ─> y
    after    x ─> Conv(dilations = b, pads = padding + b * pads - crops) ─> y

TensorFlow writes dilated convolutions in this form. Space to batch moves every b-th row into an
image of its own. It is written with Reshapes and Transposes, or with SpaceToDepth; batch to space
is its inverse. ``axis_parts.py`` follows them through shapes, so any form matches; channels may
come last.

Needs    (1) known spatial sizes, the same blocks before and after, and stride 1. Pad adds zeros to
         spatial axes only, and Slice removes no more than the Pad adds.
Keeps    (1) inner results with other readers; (2) a Pad or a Slice of another kind, outside the
         convolution.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.walk import Walk, producer_of
from smelt.passes.base import rounding, rule_pass
from smelt.passes.convolution.axis_parts import MOVES
from smelt.passes.convolution.space_to_batch import Entry, Exit, entry_of, exit_of
from smelt.passes.convolution.spatial_edges import crops_of, padding_of


@rule(op("Conv", op(MOVES, var("moved"), rest=True), var("weight"), rest=True), same_shape=True)
def dilated_conv(m: Match, b: Builder) -> Replacement:
    """Replace the chain by a Conv with dilations and pads."""
    conv, walk = m.root, m.walk()
    entry = entry_of(walk, m.opset)
    if entry is None:
        return None
    if opset.attribute(conv, "auto_pad", m.opset) not in (None, "NOTSET", "VALID"):
        return Miss("auto_pad of the convolution is neither NOTSET nor VALID")
    if any(step != 1 for step in opset.attribute(conv, "strides", m.opset) or ()):  # needs 1
        return Miss("a stride of the convolution is not 1")
    exit_ = exit_of(walk, entry, m.opset)
    if exit_ is None:
        return Miss(
            "the batch to space is not proved to undo the space to batch before the convolution"
        )
    source, padding = _padded(entry, m.constants, m.opset)
    pads = _pads(conv, entry, padding, m.opset)
    crops = _crops(walk, exit_, pads, m.constants)
    if refusal := m.replaces(walk):  # keeps 1
        return refusal
    pads = [pad - crop for pad, crop in zip(pads, crops, strict=True)]
    y = _dilated(conv, entry, _transposed(b, source, entry.order), pads, b, m.opset)
    return _transposed(b, y, exit_.order)


def _padded(entry: Entry, constants: Constants, version: int) -> tuple[ir.Value, list[int]]:
    """Return the input of the Pad before ``entry`` and its pads; without Pad, the source and
    zeros."""
    no_padding = [0] * (2 * len(entry.blocks))
    pad = producer_of(entry.source, "Pad")
    if pad is None or pad.inputs[0] is None:
        return entry.source, no_padding
    padding = padding_of(pad, entry.order, constants, version)
    return (entry.source, no_padding) if padding is None else (pad.inputs[0], padding)  # keeps 2


def _pads(conv: ir.Node, entry: Entry, padding: list[int], version: int) -> list[int]:
    """Return the pads of the dilated convolution: ``padding`` of the Pad, and those of ``conv``.

    ``conv`` pads each of the small images that the block cuts the image into. One padded row of a
    small image stands for ``b`` padded rows of the whole image, where b is the block.
    """
    automatic = opset.attribute(conv, "auto_pad", version)
    explicit = opset.attribute(conv, "pads", version) if automatic != "VALID" else None
    blocks = (*entry.blocks, *entry.blocks)
    explicit = explicit or [0] * len(padding)
    return [
        padded + block * own_pad
        for padded, block, own_pad in zip(padding, blocks, explicit, strict=True)
    ]


def _crops(walk: Walk, exit_: Exit, pads: list[int], constants: Constants) -> list[int]:
    """Return how much a Slice at the end removes, if smaller ``pads`` can replace it, else zeros.

    ``walk`` records the Slice, to be replaced with the chain, only in the first case.
    """
    mark = walk.mark()
    cut = walk.down(("Slice",))
    crops = crops_of(cut, exit_.order, exit_.sizes, constants) if cut is not None else None
    if crops is not None and not any(p < c for p, c in zip(pads, crops, strict=True)):
        return crops
    walk.back(mark)
    return [0] * len(pads)


def _dilated(
    conv: ir.Node, entry: Entry, source: ir.Value, pads: list[int], b: Builder, version: int
) -> ir.Value:
    """Return the Conv of ``source`` with dilations multiplied by the blocks."""
    explicit = opset.attribute(conv, "dilations", version) or [1] * len(entry.blocks)
    dilations = [block * step for block, step in zip(entry.blocks, explicit, strict=True)]
    attributes = {a.name: a for a in conv.attributes.values() if a.name != "auto_pad"}
    attributes["dilations"] = ir.AttrInt64s("dilations", dilations)
    attributes["pads"] = ir.AttrInt64s("pads", pads)
    inputs = (source, *conv.inputs[1:])
    return b.add(ir.Node("", "Conv", inputs, list(attributes.values())))[0]


def _transposed(b: Builder, value: ir.Value, order: tuple[int, ...]) -> ir.Value:
    """Return ``value`` with its axes in ``order``, or ``value`` itself if they already are."""
    in_order = list(order) == sorted(order)
    return value if in_order else b.op("Transpose", value, perm=list(order))


fuse_dilated_conv = rule_pass(
    "fuse_dilated_conv",
    __doc__,
    [dilated_conv],
    exactness=rounding(4, "kernels sum in another order"),
    source="Core ML MIL: common::fuse_dilated_conv",
)
