"""Stop ONNX Runtime from folding a Pad with zeros into the MaxPool behind it.

    before   x ─> Pad(0) ─> MaxPool ─> y
    after    x ─> Pad(0) ─> MaxPool(auto_pad = VALID) ─> y

ONNX Runtime (1.31) turns such a Pad into padding of the pool, which is by -inf: where all elements
of a window at the edge are negative, the result is negative instead of 0. It does so only if the
pool is the only reader of the Pad, so passes that remove other readers would change results. It
does not fold into pools with ``auto_pad = VALID``, which compute the same.

Needs    (1) a Pad with the constant 0 and no other reader; (2) a pool without padding of its own
         that rounds sizes down.
Keeps    (1) elements known to be at least 0 (behind a Relu, for example) with less padding than the
         kernel, because the maxima are the same; (2) a pool whose second output, the indices, is
         read.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import opset, scope
from smelt.ir.build import Builder
from smelt.ir.node_inputs import optional_input
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.walk import producer_of
from smelt.passes.base import EXACT, rule_pass

_NOT_NEGATIVE = ("Relu", "Sigmoid", "HardSigmoid", "Abs", "Exp", "Sqrt", "Softmax", "Softplus")
"""Operators whose results are at least 0."""


@rule(
    op("MaxPool", op("Pad", var("x"), rest=True, name="padded")),  # needs 1
    min_opset=11,
    same_shape=True,
)
def pool_of_zeros(m: Match, b: Builder) -> Replacement:
    """Set ``auto_pad`` of the MaxPool to VALID, which ONNX Runtime does not fold a Pad into."""
    pad, pool = m.node("padded"), m.root
    value = optional_input(pad, 2)
    if opset.attribute(pad, "mode", m.opset) != "constant":
        return None
    if value is not None and not m.constants.is_number(value, 0):
        return None
    if opset.attribute(pool, "auto_pad", m.opset) not in (None, "NOTSET"):
        return None
    if any(opset.attribute(pool, "pads", m.opset) or ()):  # needs 2
        return Miss("pads of the MaxPool are not all 0")
    if opset.attribute(pool, "ceil_mode", m.opset):
        return Miss("ceil_mode of the MaxPool is not 0")
    if any(not scope.is_dead(indices) for indices in pool.outputs[1:]):  # keeps 2
        return Miss("the indices of the maxima are read")
    if _is_harmless(m, pad):  # keeps 1
        return Miss("no element of the padded tensor is below 0")
    kept_attributes = [a for a in pool.attributes.values() if a.name not in ("auto_pad", "pads")]
    attributes = [*kept_attributes, ir.AttrString("auto_pad", "VALID")]
    (result,) = b.add(ir.Node("", "MaxPool", pool.inputs, attributes))
    return (result, *[None] * (len(pool.outputs) - 1))


def _is_harmless(m: Match, pad: ir.Node) -> bool:
    """True if padding with -inf gives the same maxima as padding with 0.

    So it is if no element is negative and each window has an element, not only padding.
    """
    kernel = opset.attribute(m.root, "kernel_shape", m.opset)
    pads = m.ints(pad.inputs[1])
    if pads is None or producer_of(m["x"], *_NOT_NEGATIVE) is None:
        return False
    return bool(max(pads, default=0) < min(kernel))


guard_padded_maximum = rule_pass("guard_padded_maximum", __doc__, [pool_of_zeros], exactness=EXACT)
