"""Fold a Pad with zeros into the convolution or average pool behind it.

    before   x ─> Pad(0, pads = p) ─> Conv(pads = q) ─> y
    after    x ─> Conv(pads = p + q) ─> y

Needs    (1) constant pads with the constant 0, on spatial axes only, not negative; (2) explicit
         pads in the convolution. A Transpose may be between them (channels last). An AveragePool
         must count the padding, and its kernel must be larger than the padding.
Keeps    (1) an image that may be empty without the padding, by its size or by bounds that begin at
         0: runtimes refuse an empty image; (2) other modes and values; (3) the Pad for its other
         readers; (4) pads of the batch or of channels; (5) MaxPool: 0 is not neutral for a maximum,
         and ONNX Runtime's MaxPool pads with the lowest number instead of -inf; (6) a Pad that a
         MaxPool also reads: once the MaxPool is its only reader, ONNX Runtime turns the Pad into
         padding of the MaxPool, which is wrong for negative numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from smelt.ir import opset, scope
from smelt.ir.bounds import possibly_zero_symbols
from smelt.ir.build import Builder
from smelt.ir.node_inputs import first_inputs
from smelt.ir.pattern import one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import is_positive
from smelt.passes.base import exact_but_zero_sign, rule_pass

_pad = op("Pad", var("x"), rest=True, name="padded", shared=True)  # keeps 3
_source = one_of(_pad, op("Transpose", _pad, name="moved", shared=True))


@rule(
    one_of(op("Conv", _source, rest=True), op("AveragePool", _source)),  # keeps 5
    min_opset=11,
    same_shape=True,
)
def pad_inside(m: Match, b: Builder) -> Replacement:
    """Replace the Pad and its reader by the reader with larger pads."""
    if _is_pooled(m.node("padded").outputs[0]):  # keeps 6
        return Miss("a MaxPool reads the Pad, too, and would be computed wrong as its only reader")
    pads = _spatial_pads(m, possibly_zero_symbols(b.model.graph))  # needs 1
    if isinstance(pads, Miss):
        return pads
    automatic = opset.attribute(m.root, "auto_pad", m.opset)
    if automatic not in (None, "NOTSET", "VALID"):  # needs 2
        return Miss("auto_pad of the operator behind the Pad is neither NOTSET nor VALID")
    own_pads = opset.attribute(m.root, "pads", m.opset) if automatic != "VALID" else None
    total = [pad + own_pad for pad, own_pad in zip(pads, own_pads or [0] * len(pads), strict=True)]
    attributes = {a.name: a for a in m.root.attributes.values() if a.name != "auto_pad"}
    attributes["pads"] = ir.AttrInt64s("pads", total)
    if m.root.op_type == "AveragePool":
        refusal = _unfit_pool(m, total, has_own_pads=any(own_pads or ()))
        if refusal is not None:
            return refusal
        attributes["count_include_pad"] = ir.AttrInt64("count_include_pad", 1)
    source = m["x"] if m.get("moved") is None else b.like(m.node("moved"), m["x"])
    inputs = (source, *m.root.inputs[1:])
    return b.add(ir.Node("", m.root.op_type, inputs, list(attributes.values())))[0]


def _is_pooled(value: ir.Value) -> bool:
    """True if a MaxPool reads ``value``, directly or through Transposes."""
    return any(
        reader.op_type == "MaxPool"
        or (reader.op_type == "Transpose" and _is_pooled(reader.outputs[0]))
        for reader in scope.consumers(value)
    )


def _spatial_pads(m: Match, empty: Iterable[str]) -> list[int] | Miss:
    """Return the Pad's pads along the spatial axes of the reader, begins before ends, or a Miss.

    ``empty``: the symbols of sizes that may be 0. A Transpose behind the Pad moves its axes.
    """
    node, x = m.node("padded"), m["x"]
    _, pads_input, value, axes_input = first_inputs(node, 4)
    if x.shape is None:
        return Miss("the rank of x is unknown")
    if opset.attribute(node, "mode", m.opset) != "constant":  # keeps 2
        return Miss("the mode of the Pad is not 'constant'")
    if not all(is_positive(dim, empty) for dim in x.shape.dims[1:]):  # keeps 1
        return Miss("a size may be 0 before the padding, and runtimes refuse an empty image")
    if value is not None and not m.constants.is_number(value, 0):
        return Miss("the value that the Pad inserts is not 0")
    rank, pads = len(x.shape), m.ints(pads_input)
    axes = tuple(range(rank)) if axes_input is None else m.ints(axes_input)
    if pads is None or axes is None or len(pads) != 2 * len(axes):
        return Miss("pads or axes of the Pad are not constant")
    if min(pads, default=0) < 0:
        return Miss("a number in the pads is negative")
    perm = tuple(range(rank))
    if m.get("moved") is not None:
        perm = tuple(opset.attribute(m.node("moved"), "perm", m.opset) or perm[::-1])
    pads_by_axis = [(0, 0)] * rank
    for index, axis in enumerate(axes):
        pads_by_axis[perm.index(axis % rank)] = (pads[index], pads[index + len(axes)])
    batch_pads, channel_pads, *spatial_pads = pads_by_axis
    if any(batch_pads) or any(channel_pads):  # keeps 4
        return Miss("the Pad extends the batch axis or the channel axis")
    return [begin for begin, _ in spatial_pads] + [end for _, end in spatial_pads]


def _unfit_pool(m: Match, pads: list[int], has_own_pads: bool) -> Miss | None:
    """Return a Miss if the AveragePool cannot have ``pads``, the sum of both, else None.

    It will count all padding, so it must have counted its own before, if it has any
    (``has_own_pads``). And each window must have an element that is not padding.
    """
    counts_pads = bool(opset.attribute(m.root, "count_include_pad", m.opset))
    if not counts_pads and has_own_pads:
        return Miss("the AveragePool has pads of its own and count_include_pad=0")
    if opset.attribute(m.root, "ceil_mode", m.opset):
        return Miss("ceil_mode of the AveragePool is not 0")
    kernel = opset.attribute(m.root, "kernel_shape", m.opset)
    if any(pad >= size for pad, size in zip(pads, [*kernel, *kernel], strict=True)):
        return Miss("a pad is not smaller than the kernel of the AveragePool")
    return None


fuse_pad_conv = rule_pass(
    "fuse_pad_conv",
    __doc__,
    [pad_inside],
    exactness=exact_but_zero_sign("without explicit zeros, a sum of -0 stays -0"),
    source="Core ML MIL: common::fuse_pad_conv",
)
