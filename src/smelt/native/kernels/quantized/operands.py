"""The operands of quantized operators: positions of inputs, and values of constant ones.

Sums are multiplied by ``x_scale * w_scale / y_scale``, computed in float in this order as in ONNX
Runtime. The products are clamped to the bytes of the result, rounded to even, and shifted by the
zero point.

A bias is int32, in steps of the sums (``x_scale * w_scale``), or float32. The whole steps of a
float32 bias are added to the integer sums, and its fractions of a step to the sums as floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext

BYTES = frozenset({ir.DataType.INT8, ir.DataType.UINT8})
LARGEST = 255
"""The largest absolute value of a byte minus its zero point."""

SIGNS = 0x80808080 - 2**32
"""The sign bits of four bytes, as a 32-bit integer."""


@dataclass(frozen=True, slots=True)
class InputPositions:
    """The positions of the inputs of a product; ``scales`` are those of x, w and y.

    Without ``scales`` the sums are the result.
    """

    w: int
    w_zero: int
    x_zero: int
    scales: tuple[int, int, int] | None = None
    y_zero: int = -1
    bias: int = -1


INPUT_POSITIONS: Mapping[str, InputPositions] = {
    "QLinearConv": InputPositions(w=3, w_zero=5, x_zero=2, scales=(1, 4, 6), y_zero=7, bias=8),
    "ConvInteger": InputPositions(w=1, w_zero=3, x_zero=2),
    "QLinearMatMul": InputPositions(w=3, w_zero=5, x_zero=2, scales=(1, 4, 6), y_zero=7, bias=8),
    "MatMulInteger": InputPositions(w=1, w_zero=3, x_zero=2),
}
"""Positions by instruction; the left side or image is always the first input."""


def input_positions(instance: Instance) -> InputPositions:
    """Return the positions of the inputs of an instruction."""
    return INPUT_POSITIONS[instance.instruction.op]


def constant(instance: Instance, position: int) -> np.ndarray | None:
    """Return a constant input; None if it is absent or computed."""
    if not is_present(instance, position):
        return None
    return instance.program.constants.get(instance.instruction.inputs[position])


def is_present(instance: Instance, position: int) -> bool:
    """True if there is an input at ``position``."""
    return position >= 0 and instance.slot(position) is not None


def refuse_operands(instance: Instance) -> str | None:
    """Return why the instruction is refused, None if it is a product of bytes with constants."""
    positions = input_positions(instance)
    needed = [
        positions.w,
        positions.w_zero,
        *(positions.scales or ()),
        positions.y_zero,
        positions.bias,
    ]
    if positions.scales is not None:
        needed.append(positions.x_zero)
    if any(
        is_present(instance, position) and constant(instance, position) is None
        for position in needed
    ):
        return "weights, scales or zero points that are not constant"
    slots = [instance.slot(0), instance.slot(positions.w)]
    if any(slot is None or slot.dtype not in BYTES for slot in slots):
        return "operands of other types than int8 and uint8"
    zero = instance.slot(positions.x_zero)
    if zero is not None and zero.size != 1:
        return "several zero points of the left side"
    if positions.scales is not None:
        left_scale, weight_scale, result_scale = (
            constant(instance, position) for position in positions.scales
        )
        scales = [array for array in (left_scale, weight_scale, result_scale) if array is not None]
        if any(array.size != 1 for array in (left_scale, result_scale) if array is not None):
            return "several scales of the left side or of the result"
        if not all(np.isfinite(array).all() and (array > 0).all() for array in scales):
            return "a scale that is not positive and finite"
    return None


def refuse_sums(instance: Instance, weights: np.ndarray, axis: tuple[int, ...]) -> str | None:
    """Return why the sums are refused: with the bias, they may exceed 32 bits. None if they cannot.

    Sums are over ``axis`` of ``weights``.
    """
    most = float(np.abs(weights.astype(np.int64)).sum(axis).max(initial=0)) * LARGEST
    most += float(np.abs(bias_steps(instance)).max(initial=0))
    return None if most + 1 < 2**31 else "sums that may exceed 32 bits"


def bias_steps(instance: Instance) -> np.ndarray:
    """Return the bias in steps of the sums, as float64: ``[1]`` or ``[channel]``.

    The steps of a float32 bias are rounded to whole numbers if these stand for the same float32.
    """
    positions = input_positions(instance)
    bias = constant(instance, positions.bias)
    if bias is None or positions.scales is None:
        return np.zeros(1)
    if bias.dtype != np.float32:
        return bias.reshape(-1).astype(np.float64)
    left_scale, weight_scale = (
        np.asarray(constant(instance, position), np.float64).reshape(-1)
        for position in positions.scales[:2]
    )
    steps = bias.reshape(-1) / (left_scale * weight_scale)
    rounded_steps = np.rint(steps)
    return np.where(
        (rounded_steps * (left_scale * weight_scale)).astype(np.float32) == bias.reshape(-1),
        rounded_steps,
        steps,
    )


def weights_minus_zero_point(instance: Instance, axis: int) -> np.ndarray:
    """Return the weights minus their zero points along ``axis``: int8 if they fit, else int16."""
    positions = input_positions(instance)
    weights, zero = constant(instance, positions.w), constant(instance, positions.w_zero)
    assert weights is not None
    as_int16 = weights.astype(np.int16)
    if zero is not None:
        shape = [1] * weights.ndim
        shape[axis] = zero.size
        as_int16 = as_int16 - zero.astype(np.int16).reshape(shape if zero.size > 1 else ())
    fits_int8 = as_int16.size == 0 or (as_int16.min() >= -128 and as_int16.max() <= 127)
    return as_int16.astype(np.int8) if fits_int8 else as_int16


def is_zero_computed(instance: Instance) -> bool:
    """True if the zero point of the left operand is known at run time only."""
    position = input_positions(instance).x_zero
    return is_present(instance, position) and constant(instance, position) is None


def zero_text(cx: KernelContext) -> str:
    """Return the zero point of the left operand, as C."""
    position = input_positions(cx).x_zero
    array = constant(cx, position)
    if array is not None or not is_present(cx, position):
        return str(0 if array is None else int(array.reshape(-1)[0]))
    return f"{cx.input(position).name}[0]"


@dataclass(frozen=True)
class Requantization:
    """The factors of a requantization, one per filter or column, in float, and ``exact`` in double.

    ``fractions`` of a step are added to the sums first; None if all are 0. ``zero`` and ``signed``
    describe the result.
    """

    factors: np.ndarray
    exact: np.ndarray
    fractions: np.ndarray | None
    zero: int
    signed: bool

    @property
    def zero_and_flip(self) -> tuple[int, int]:
        """The zero point of the result as unsigned bytes, and a mask that is applied to four bytes
        at once: it flips their sign bits if the result is signed.
        """
        return (self.zero + 128, SIGNS) if self.signed else (self.zero, 0)


def requantization(instance: Instance, count: int) -> Requantization | None:
    """Return the requantization of ``count`` filters or columns; None if the
    sums are the result."""
    positions = input_positions(instance)
    if positions.scales is None:
        return None
    arrays = [constant(instance, position) for position in positions.scales]
    left_scale, weight_scale, result_scale = (
        np.asarray(array, np.float32).reshape(-1) for array in arrays
    )
    factors = (left_scale * weight_scale / result_scale).astype(np.float32)
    exact = left_scale.astype(np.float64) * weight_scale / result_scale
    steps = bias_steps(instance)
    fractions = np.broadcast_to((steps - np.rint(steps)).astype(np.float32), (count,))
    zero = constant(instance, positions.y_zero)
    dtype = instance.program.slots[instance.instruction.outputs[0]].dtype
    return Requantization(
        np.broadcast_to(factors, (count,)),
        np.broadcast_to(exact, (count,)),
        fractions if fractions.any() else None,
        0 if zero is None else int(zero.reshape(-1)[0]),
        dtype == ir.DataType.INT8,
    )
