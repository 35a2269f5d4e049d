"""Refuse to run a model in which one value needs too much memory."""

from __future__ import annotations

import onnx_ir as ir

from smelt.errors import ResourceLimit
from smelt.ir import scope
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.symbolic_dims.invented_dims import every_value

VALUE_LIMIT = 1 << 30
"""The most bytes of one value; a model of one kilobyte can need terabytes."""

ASSUMED_SIZE = 4
"""The assumed size of a symbolic dim, about the largest default size of a comparison."""


def check_memory(model: ir.Model) -> None:
    """Raise ResourceLimit E510 if a value of ``model`` exceeds ``VALUE_LIMIT``.

    Sizes come from shape inference, so data-dependent sizes are not checked. Inferred types are
    removed again.
    """
    declared = [(value, value.type, _copy(value.shape)) for value in every_value(model)]
    shapes = ShapeInference(model)
    try:
        shapes.infer_model()
        _check(model, VALUE_LIMIT)
    finally:
        shapes.restore_interface()
        for value, type_, shape in declared:
            value.type, value.shape = type_, shape


def _copy(shape: ir.Shape | None) -> ir.Shape | None:
    """Return a copy of ``shape``, because inference refines some shapes in place."""
    return None if shape is None else shape.copy()


def _check(model: ir.Model, limit: int) -> None:
    """Raise ResourceLimit E510 if a result of a node has more than ``limit`` bytes."""
    for node in scope.nodes(model):
        for value in node.outputs:
            size = _bytes(value)
            if size > limit:
                raise ResourceLimit(
                    "E510",
                    f"the model needs {size:,} bytes for one value; the limit is {limit:,}",
                    at=f"node {node.name!r} ({node.op_type}), value {value.name!r}",
                    why="a value of this size would exhaust the memory of the machine",
                    fix="run the model at smaller sizes",
                )


def _bytes(value: ir.Value) -> int:
    """Return the bytes of ``value``; symbolic dims count ``ASSUMED_SIZE``, an unknown
    rank 0 bytes.
    """
    if value.shape is None or value.dtype is None:
        return 0
    bits = 64 if value.dtype == ir.DataType.STRING else int(value.dtype.bitwidth)
    for dim in value.shape.dims:
        bits *= dim if isinstance(dim, int) else ASSUMED_SIZE
    return bits // 8
