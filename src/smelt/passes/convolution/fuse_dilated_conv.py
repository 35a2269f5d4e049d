"""Turn a convolution over interleaved images back into one that skips elements.

    before   x ─> Pad ─> space to batch (b) ─> Conv ─> batch to space (b) ─> Slice ─> y
    after    x ─> Conv(dilations = b, pads = padding + b * pads - crops) ─> y

TensorFlow dilates a convolution so. Space to batch puts every b-th row into an image of its own;
it and its inverse are Reshapes and Transposes, or SpaceToDepth and DepthToSpace. What they do is
followed through shapes, so their spelling does not matter; channels may come last.

Needs    known spatial sizes, the same blocks in and out, and stride 1. The padding is by 0 and of
         spatial axes, and the crops take no more than the padding adds.
Keeps    inner results that something else reads; a Pad or a Slice of another kind, outside.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.known_forms import is_known, unknown_part
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import PassContext, graph_pass, rounding
from smelt.passes.convolution.space_to_batch import Entry, Exit, entry_of, exit_of, only_reader
from smelt.passes.convolution.spatial_edges import crops_of, padding_of
from smelt.passes.tensors.interior import is_closed
from smelt.passes.tensors.stack import producer_of


@graph_pass(
    "fuse_dilated_conv",
    __doc__,
    exactness=rounding(4, "kernels sum in another order"),
    source="Core ML MIL: common::fuse_dilated_conv",
)
def fuse_dilated_conv(cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: None) -> None:
    index = cx.index()
    for conv in list(index.nodes([("", "Conv")])):
        if conv in rewriter.dead or conv.graph is None or rewriter.exhausted:
            continue
        version = index.opsets[conv.graph]
        entry = entry_of(conv, version)
        if entry is None:
            continue
        reason = _fuse(conv, entry, rewriter, version)
        if reason is None:
            stats.fired["dilated_conv"] += 1
        else:
            stats.miss("dilated_conv", reason, conv)


def _fuse(conv: ir.Node, entry: Entry, rewriter: Rewriter, version: int) -> str | None:
    """Replace what surrounds ``conv``; returns the condition that failed, if one did."""
    if not is_known(conv):
        return f"the convolution has {unknown_part(conv)}"
    if opset.attribute(conv, "auto_pad", version) not in (None, "NOTSET", "VALID"):
        return "the pads of the convolution are automatic"
    if any(step != 1 for step in opset.attribute(conv, "strides", version) or ()):
        return "the convolution has strides"
    found = exit_of(conv, entry, version)
    if found is None:
        return "the images are not proved to be woven together as they were parted"
    inner = [*entry.nodes, conv, *found.nodes]
    if not is_closed(inner[:-1], inner[-1]):
        return "an inner result is read elsewhere"
    source, padding = _padded(entry, rewriter.constants, version)
    pads = _pads(conv, entry, padding, version)
    root, crops = _cropped(found, pads, rewriter.constants)
    b = rewriter.builder(root, [*inner, root], "dilated_conv")
    pads = [pad - crop for pad, crop in zip(pads, crops, strict=True)]
    y = _dilated(conv, entry, _transposed(b, source, entry.order), pads, b, version)
    try:
        rewriter.replace(root, [_transposed(b, y, found.order)], trust_shape=True)
    except Refused as refused:
        b.discard()
        return str(refused)
    return None


def _padded(entry: Entry, constants: Constants, version: int) -> tuple[ir.Value, list[int]]:
    """The input of the Pad before ``entry`` and its pads, if a convolution can do the padding."""
    none = [0] * (2 * len(entry.blocks))
    pad = producer_of(entry.source, "Pad")
    if pad is None or pad.inputs[0] is None:
        return entry.source, none
    padding = padding_of(pad, entry.order, constants, version)
    return (entry.source, none) if padding is None else (pad.inputs[0], padding)


def _pads(conv: ir.Node, entry: Entry, padding: list[int], version: int) -> list[int]:
    """A row of padding around each of the parted images is ``b`` rows around the whole."""
    automatic = opset.attribute(conv, "auto_pad", version)
    own = opset.attribute(conv, "pads", version) if automatic != "VALID" else None
    blocks = (*entry.blocks, *entry.blocks)
    own = own or [0] * len(padding)
    return [p + block * q for p, block, q in zip(padding, blocks, own, strict=True)]


def _cropped(found: Exit, pads: list[int], constants: Constants) -> tuple[ir.Node, list[int]]:
    """The Slice behind ``found`` and its crops, if smaller ``pads`` have the same effect."""
    cut = only_reader(found.result, "Slice")
    crops = crops_of(cut, found.order, found.sizes, constants) if cut is not None else None
    if cut is None or crops is None or any(p < c for p, c in zip(pads, crops, strict=True)):
        return found.nodes[-1], [0] * len(pads)
    return cut, crops


def _dilated(
    conv: ir.Node, entry: Entry, source: ir.Value, pads: list[int], b: Builder, version: int
) -> ir.Value:
    own = opset.attribute(conv, "dilations", version) or [1] * len(entry.blocks)
    dilations = [block * step for block, step in zip(entry.blocks, own, strict=True)]
    attributes = {a.name: a for a in conv.attributes.values() if a.name != "auto_pad"}
    attributes["dilations"] = ir.AttrInt64s("dilations", dilations)
    attributes["pads"] = ir.AttrInt64s("pads", pads)
    inputs = (source, *conv.inputs[1:])
    return b.add(ir.Node("", "Conv", inputs, list(attributes.values())))[0]


def _transposed(b: Builder, value: ir.Value, order: tuple[int, ...]) -> ir.Value:
    in_order = list(order) == sorted(order)
    return value if in_order else b.op("Transpose", value, perm=list(order))
