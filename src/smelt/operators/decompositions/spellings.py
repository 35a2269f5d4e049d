"""Rewrites of an operator to another form of itself, for consumers that read only one form."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from smelt.operators.decompositions.row import Call, Row


def _rows_by_default_axis(c: Call) -> ir.Value | None:
    """Return a Gather along axis 0 without the attribute ``axis``, whose default is 0.

    None if the attribute is absent already, or names another axis.
    """
    if c.attributes["axis"] != 0 or "axis" not in c.node.attributes:
        return None
    return c.b.op("Gather", c[0], c[1])


def _with_mode(c: Call) -> ir.Value | None:
    """Return a Pad that names its mode; None if it does already."""
    if "mode" in c.node.attributes:
        return None
    return c.b.op("Pad", *c.node.inputs, mode=c.attributes["mode"])


def _with_sizes(c: Call) -> tuple[ir.Value, ...] | None:
    """Return a Split with the sizes of its parts as an input; None if it has sizes already, or if
    they are unknown."""
    rank = c.rank()
    if rank is None or c.get(1) is not None:
        return None
    axis = c.attributes["axis"] % rank
    shapes = [c.sizes(value) for value in c.node.outputs]
    sizes = [shape[axis] for shape in shapes if shape is not None]
    if len(sizes) < len(shapes) or "split" in c.node.attributes:
        return None
    return c.b.ops("Split", c[0], c.b.const_i64(sizes), outputs=len(sizes), axis=axis)


def _with_bias(c: Call) -> ir.Value | None:
    """Return a LayerNormalization with a bias of zeros; None with a bias or further outputs."""
    scale = c.constants.get(c[1], limit=None)
    if c.get(2) is not None or len(c.node.outputs) > 1 or scale is None:
        return None
    attributes = {each.name: each.value for each in c.node.attributes.values()}
    bias = c.b.constant(np.zeros_like(scale))
    return c.b.op("LayerNormalization", c[0], c[1], bias, **attributes)


def _of_one_sample(c: Call) -> ir.Value | None:
    """Return a binary operator whose constant has one sample in place of many equal ones.

    The constant then broadcasts along the batch. None if its samples differ, or if the other
    operand has another number of samples or is constant, too.
    """
    if len(c.node.inputs) != 2:
        return None
    arrays = [c.constants.get(value, limit=None) for value in c.node.inputs]
    for place, array in enumerate(arrays):
        others = c.sizes(c[1 - place])
        if array is None or others is None or arrays[1 - place] is not None or array.ndim < 3:
            continue
        if 1 < len(array) == others[0] and array.ndim == len(others) and _are_equal(array):
            operands = [*c.inputs]
            operands[place] = c.b.constant(array[:1])
            return c.b.op(c.node.op_type, *operands)
    return None


def _are_equal(array: np.ndarray) -> bool:
    """True if the rows of ``array`` have the same bytes."""
    return all(row.tobytes() == array[0].tobytes() for row in array[1:])


ROWS: Mapping[str, tuple[Row, ...]] = {
    **{name: (Row(name, _of_one_sample),) for name in ("Add", "Div", "MatMul", "Mul", "Sub")},
    "Gather": (Row("Gather", _rows_by_default_axis),),
    "LayerNormalization": (Row("LayerNormalization", _with_bias),),
    "Pad": (Row("Pad", _with_mode),),
    "Split": (Row("Split", _with_sizes),),
}
