"""Dropout: the identity. A run that would drop elements, which is random, aborts."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.scope import is_dead
from smelt.program.instruction import FAIL
from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers

DROPS_NOTHING = "a Dropout is not training, or its ratio is 0"


@lowers("Dropout")
def dropout(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the identity; a run whose inputs request dropped elements aborts."""
    if node.attributes.get_float("ratio", 0.5) < 0:
        raise cx.refuse("its ratio is negative")
    drops = _drops(cx, node)
    if drops is True:
        raise cx.refuse("it is in training mode, so its result is random")
    if len(node.outputs) > 1 and not is_dead(node.outputs[1]):
        _full_mask(cx, node)
    slot = cx.slot(node.inputs[0])
    cx.alias(node.outputs[0], _guarded(cx, drops, slot, node) if drops is not False else slot)


def _drops(cx: ProgramBuilder, node: ir.Node) -> bool | Array:
    """True if the node trains with a ratio other than 0; an Array if only a run can say that."""
    m, ratio, training = Steps(cx), cx.input(node, 1), cx.input(node, 2)
    trains = cx.constants.scalar(training) if training is not None else False
    share = cx.constants.scalar(ratio) if ratio is not None else 0.5
    if trains is not None and share is not None:
        return bool(trains) and share != 0
    if trains is False or share == 0:
        return False
    conditions = [] if training is None or trains is not None else [m.array(training).reshape()]
    if ratio is not None and share is None:
        conditions.append(m.op("Not", m.op("Equal", m.array(ratio).reshape(), 0)))
    return conditions[0] if len(conditions) == 1 else m.op("And", *conditions)


def _guarded(cx: ProgramBuilder, drops: Array, slot: int, node: ir.Node) -> int:
    """Return the slot of an If that aborts the run if ``drops`` is true; else its result is that of
    ``slot``, the operand of the Dropout.
    """
    aborting, identity = ProgramBuilder(cx.model, cx), ProgramBuilder(cx.model, cx)
    aborting.node = node
    shape, dtype = cx.shape(slot), cx.dtype(slot)
    aborting.program.outputs = (aborting.emit_new(FAIL, (), shape, dtype=dtype, why=DROPS_NOTHING),)
    identity.program.outputs = (identity.slot(node.inputs[0]),)
    identity.program.inputs = tuple(identity.captured.values())
    result = cx.new(dtype, shape, node.outputs[0].name or "")
    inputs = (drops.slot, *identity.captured)
    cx.emit_control("If", inputs, (result,), (aborting.program, identity.program), split=0)
    return result


def _full_mask(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the mask of a Dropout that drops nothing: true everywhere."""
    if cx.opset < 10:
        raise cx.refuse("its mask is read, and smelt lowers the mask only from opset 10 on")
    mask = node.outputs[1]
    mask.type, mask.shape = ir.TensorType(ir.DataType.BOOL), node.outputs[0].shape
    cx.emit("Expand", (cx.constant(np.asarray(True), "kept"),), (cx.define(mask),))
