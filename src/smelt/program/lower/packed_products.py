"""MatMulNBits and GatherBlockQuantized of ONNX Runtime, which read packed weights of a few bits."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import tensor_of
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers

PRODUCT = {"K": 0, "N": 0, "bits": 4, "block_size": 0, "accuracy_level": 0, "weight_prepacked": 0}
ROWS = {"bits": 4, "block_size": 128, "quantize_axis": 1, "gather_axis": 0}
"""The attributes of each operator, with their default values."""


@lowers("com.microsoft::MatMulNBits")
def product_of_few_bits(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit one instruction if the target reads packed weights; else refuse, and the body is
    expanded."""
    _emit(cx, node, PRODUCT)


@lowers("com.microsoft::GatherBlockQuantized")
def rows_of_few_bits(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit one instruction if the target reads packed rows; else refuse, and the body is
    expanded."""
    _emit(cx, node, ROWS)


def _emit(cx: ProgramBuilder, node: ir.Node, defaults: dict[str, int]) -> None:
    """Emit ``node`` with integer attributes; raises Unsupported E201 if the target refuses it."""
    numbers = {name: node.attributes.get_int(name, value) for name, value in defaults.items()}
    _read_stored_scales(cx, node.inputs[2])
    if numbers.get("weight_prepacked") or not cx.emit_if_supported(node, **numbers):
        raise cx.refuse("the target has no instruction for it")


def _read_stored_scales(cx: ProgramBuilder, scales: ir.Value | None) -> None:
    """Let ``scales`` be a constant if it is a Cast of constants, as files store float16 scales."""
    cast = None if scales is None else scales.producer()
    if scales is None or cast is None or (cast.domain, cast.op_type) != ("", "Cast"):
        return
    source = cast.inputs[0]
    stored = None if source is None else tensor_of(source)
    if stored is None or scales.dtype is None or cx.slot(scales) in cx.program.constants:
        return
    array = np.asarray(stored.numpy()).astype(scales.dtype.numpy())
    cx.alias(scales, cx.constant(array, scales.name or "scales"))
