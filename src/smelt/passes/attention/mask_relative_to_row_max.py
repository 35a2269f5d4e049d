"""Make a float16 mask relative to the largest element of its row.

A bias of -65504 plus a negative score is -inf, or rounds away the scores of a row whose keys are
all hidden. A softmax ignores a constant added to a whole row, so the largest element of each row is
subtracted from it: then every row shows a key, and hidden keys are far lower.

    before   Where(mask, 0, -65504)
    after    w = Where(mask, 0, -65504); Sub(w, ReduceMax<axis=-1>(w))
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.rule import Match
from smelt.ir.walk import producer_of
from smelt.passes.attention.raise_bias_to_floor import bounds_of

LOWEST = -65504
"""The lowest finite float16."""


AXES_AS_INPUT = 18
"""The opset from which on ReduceMax takes its axes as an input."""


def mask_relative_to_row_max(bias: ir.Value, m: Match, b: Builder) -> ir.Value | None:
    """Return ``bias`` minus the largest element of each row, so that every row shows a key.

    A row that has only -inf becomes NaN, like its softmax. A bias proved to be above half of the
    lowest number is returned unchanged. Returns None for any other bias that differs between heads:
    its row maxima would cost as much as a softmax; or below opset 18, where ReduceMax takes no axes
    as an input.
    """
    array = m.array(bias, limit=None)
    if array is not None:
        if array.dtype != np.float16 or not array.ndim or not array.size:
            return None
        highest = array.max(-1, keepdims=True)
        if not np.isfinite(highest).all():
            return None
        shown = bool((highest > LOWEST / 2).all())
        return bias if shown else b.constant((array - highest).astype(np.float16))
    bounds = bounds_of(bias, m)
    if is_relative(bias, m.constants) or (bounds is not None and bounds[0] > LOWEST / 2):
        return bias
    if bias.dtype != ir.DataType.FLOAT16 or bias.shape is None or len(bias.shape) < 2:
        return None
    if len(bias.shape) > 2 and bias.shape[-3] != 1:
        return None
    if m.opset < AXES_AS_INPUT:
        return None
    return b.op("Sub", bias, b.op("ReduceMax", bias, b.const_i64([-1]), keepdims=1))


def is_relative(bias: ir.Value | None, constants: Constants) -> bool:
    """True if ``bias`` is already the result of ``mask_relative_to_row_max``."""
    node = producer_of(bias, "Sub")
    highest = producer_of(node.inputs[1], "ReduceMax") if node is not None else None
    if node is None or highest is None or len(highest.inputs) < 2:
        return False
    if highest.inputs[0] is not node.inputs[0] or not highest.attributes.get_int("keepdims", 1):
        return False
    return constants.ints(highest.inputs[1]) == (-1,)
