"""Lowers DFT and STFT to one instruction, which transforms along any axis."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.program.instruction import SPECTRUM
from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers

NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


@lowers("DFT")
def dft(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the DFT of [..., n, ..., 1 or 2] along ``axis``, cut or padded to ``dft_length``."""
    m = Steps(cx)
    x = m.array(node.inputs[0])
    axis_input = cx.ints(node, "axis", 2)
    default_axis = -2 if cx.opset >= 20 else 1
    axis = cx.axis(axis_input[0] if axis_input else default_axis, len(x.shape))
    if axis == len(x.shape) - 1:
        raise cx.refuse("its axis is the last dim, which holds real and imaginary parts")
    inverse, onesided = (
        node.attributes.get_int("inverse", 0),
        node.attributes.get_int("onesided", 0),
    )
    length_input = cx.ints(node, "dft_length", 1)
    count = m.size(x, axis)
    full_length = 2 * (count - 1) if inverse and onesided else count
    length = length_input[0] if length_input else full_length
    result = transform(m, x, axis, length, inverse=bool(inverse), onesided=bool(onesided))
    m.set_output(node.outputs[0], result)


def transform(
    m: Steps, x: Array, axis: int, length: int, *, inverse: bool, onesided: bool
) -> Array:
    """Return the transform along ``axis``; the last dim holds real and imaginary parts."""
    dtype, parts = x.dtype, m.size(x, -1)
    if length < 1 or m.size(x, axis) < 1:
        raise m.cx.refuse("the transform would have no elements")
    if parts not in (1, 2):
        raise m.cx.refuse(
            f"the last dim has size {parts}; it is 1 for real and 2 for complex numbers"
        )
    x = x.cast(ir.DataType.FLOAT) if dtype in NARROW else x
    shape = list(x.shape)
    shape[axis] = length // 2 + 1 if onesided and not inverse else length
    shape[-1] = 1 if onesided and inverse else 2
    options = {"inverse": int(inverse), "onesided": int(onesided)}
    return m.emit(SPECTRUM, (x,), shape, None, axis=axis, length=length, **options).cast(dtype)


@lowers("STFT")
def stft(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the DFT of windows of a signal [batch, n, 1 or 2], ``frame_step`` apart.

    ONNX Runtime also takes a real signal without its last dim, and exporters write it.
    """
    m = Steps(cx)
    signal = m.array(node.inputs[0])
    if len(signal.shape) == 2:
        signal = signal.reshape(*signal.shape, 1)
    if len(signal.shape) != 3:
        raise cx.refuse(f"the signal has rank {len(signal.shape)}, not 2 or 3")
    step, frame_length = cx.ints(node, "frame_step", 1), cx.ints(node, "frame_length", 3)
    weights = cx.input(node, 2)
    window = m.array(weights) if weights is not None else None
    count, parts = signal.shape[1], m.size(signal, 2)
    if frame_length:
        length = frame_length[0]
    else:
        length = m.sizes(window)[0] if window else m.size(signal, 1)
    is_too_long = isinstance(count, int) and length > count
    if not step or step[0] < 1 or length < 1 or is_too_long:
        raise cx.refuse("frame_step or frame_length is missing, below 1 or longer than the signal")
    if window is not None and m.sizes(window)[0] != length:
        raise cx.refuse("the window and the frames have different lengths")
    frames = (count - length) // step[0] + 1
    indices = m.numbers(frames).reshape(frames, 1) * step[0] + m.constant(np.arange(length))
    windows = signal.gather(indices, 1)
    if window is not None:
        windows = windows * window.reshape(length, 1)
    onesided = bool(node.attributes.get_int("onesided", 1))
    if onesided and parts == 2:
        raise cx.refuse("onesided=1 needs a real signal, and this one is complex")
    m.set_output(
        node.outputs[0], transform(m, windows, 2, length, inverse=False, onesided=onesided)
    )
