"""Read the parameters of a QuantizeLinear or DequantizeLinear in any of its forms.

``integer = saturate(round(x / scale) + zero_point)`` and ``x = (integer - zero_point) * scale``,
with one scale for the tensor, one for each index of an axis, or one for each block along it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.known_forms import is_known
from smelt.ir.node_inputs import first_inputs
from smelt.ir.same_shape import static_shape


@dataclass(frozen=True)
class Quantization:
    """The parameters of one node.

    ``axis`` is None if there is one scale, else counted from the front where the rank is known.
    ``block_size`` is the number of neighbours along the axis that share a scale, 0 if none do.
    ``real`` holds the types of the scale, of the result and of the multiplication or division.
    """

    scale: ir.Value
    zero_point: ir.Value | None
    integer: ir.DataType
    real: frozenset[ir.DataType]
    axis: int | None
    block_size: int

    @classmethod
    def of(cls, node: ir.Node) -> Quantization | None:
        """Return the parameters of ``node``; None if they are unknown.

        None, too, if the quantized type is not an integer, as for float8.
        """
        if not is_known(node):
            return None
        x, scale, zero_point = first_inputs(node, 3)
        if x is None or scale is None or scale.dtype is None:
            return None
        quantizes = node.op_type == "QuantizeLinear"
        integer_type = _quantized_type(node, zero_point) if quantizes else x.dtype
        float_type = x.dtype if quantizes else _type_attribute(node, "output_dtype") or scale.dtype
        precision = _type_attribute(node, "precision") or scale.dtype
        if integer_type is None or not integer_type.is_integer() or float_type is None:
            return None
        shape = static_shape(scale)
        if shape is None:
            return None
        axis = None if math.prod(shape) == 1 else _axis(node, x)
        block = node.attributes.get("block_size")
        return cls(
            scale,
            zero_point,
            integer_type,
            frozenset((scale.dtype, float_type, precision)),
            axis,
            block.as_int() if block is not None and axis is not None else 0,
        )

    def scales(self, constants: Constants) -> np.ndarray | None:
        """Return the scales in float64; None if they are not constant.

        A single scale has rank 0.
        """
        array = constants.get(self.scale, limit=None)
        return None if array is None else self._scalar_if_one(array.astype(np.float64))

    def zero_points(self, constants: Constants) -> np.ndarray | None:
        """Return the zero points in int64, 0 where absent; None if they are not constant."""
        if self.zero_point is None:
            return np.zeros(() if self.axis is None else static_shape(self.scale) or (), np.int64)
        array = constants.get(self.zero_point, limit=None)
        return None if array is None else self._scalar_if_one(array.astype(np.int64))

    def _scalar_if_one(self, array: np.ndarray) -> np.ndarray:
        """Return ``array`` as a scalar if it is one number for the whole tensor, else unchanged."""
        return array.reshape(()) if self.axis is None and array.size == 1 else array


def difference(a: Quantization, b: Quantization, constants: Constants) -> str | None:
    """Return the first parameter in which ``a`` and ``b`` are not proved equal, None if all are."""
    if a.integer != b.integer:
        return f"the quantized types differ: {a.integer} and {b.integer}"
    if (a.axis, a.block_size) != (b.axis, b.block_size):
        return "the axes or block sizes differ"
    if a.scale is not b.scale and not _both_known_and_equal(
        a.scales(constants), b.scales(constants)
    ):
        return "the scales are not proved equal"
    if a.zero_point is not b.zero_point and not _both_known_and_equal(
        a.zero_points(constants), b.zero_points(constants)
    ):
        return "the zero points are not proved equal"
    return None


def _both_known_and_equal(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    """True if both are known and equal; NaN equals nothing."""
    return a is not None and b is not None and np.array_equal(a, b)


def _quantized_type(node: ir.Node, zero_point: ir.Value | None) -> ir.DataType | None:
    """Return the element type of a QuantizeLinear's result; None if it is unknown.

    The zero point determines it; without one, the attributes do.
    """
    return zero_point.dtype if zero_point is not None else type_without_zero_point(node)


def type_without_zero_point(quantize: ir.Node) -> ir.DataType:
    """Return the type of a QuantizeLinear's result if it has no zero point."""
    return _type_attribute(quantize, "output_dtype") or ir.DataType.UINT8


def _type_attribute(node: ir.Node, name: str) -> ir.DataType | None:
    """Return the type that an attribute sets; None if it is absent or 0."""
    attribute = node.attributes.get(name)
    return ir.DataType(attribute.as_int()) if attribute is not None and attribute.as_int() else None


def _axis(node: ir.Node, x: ir.Value) -> int:
    """Return the axis of the scales of ``node``, from the front if the rank of ``x`` is known."""
    attribute = node.attributes.get("axis")
    axis = attribute.as_int() if attribute is not None else 1
    return axis + len(x.shape) if axis < 0 and x.shape is not None else axis
