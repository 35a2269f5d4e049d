"""Which operands and results of a node can be in a half type, by the schema of its operator."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.ir import opset, scope
from smelt.ir.known_forms import is_known

WIDE = ir.DataType.FLOAT
FIRST_WITH_CASTS = 6
"""The first opset whose Cast names its type by a number; before, by a text."""

KEPT = frozenset(
    {
        *opset.RANDOM,
        *scope.GRAPH_CARRIERS,
        *("BitCast", "Cast", "CastLike", "Constant", "ConstantOfShape", "EyeLike", "Shape", "Size"),
        *("BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"),
        *("CumSum", "DequantizeLinear", "DynamicQuantizeLinear", "MeanVarianceNormalization"),
        *("QLinearMatMul", "QuantizeLinear", "Range"),
    }
)
"""Operators that stay float32: attributes fix their types, or they lose too much accuracy."""

SCATTERS = frozenset({"ScatterElements", "ScatterND"})
"""Operators whose reductions stay in float32: ONNX Runtime has no float16 kernel for them."""

WIDE_VARIABLES = {
    "BatchNormalization": {"T1", "T2", "U"},  # scale, bias and statistics
    "Dropout": {"T1"},  # the ratio
    "GridSample": {"T2"},  # coordinates in the image
    "OneHot": {"T1", "T2"},  # indices and the depth
    "Resize": {"T2"},  # the region
}
"""Type variables that stay float32 in a float16 operator: coordinates, sizes, statistics."""


Places = tuple[list[int], list[int]]


def half_places(
    node: ir.Node, version: int, half: ir.DataType = ir.DataType.FLOAT16
) -> Places | None:
    """Return the indexes of float32 inputs and outputs that can be ``half``; None if no input can.

    All type variables of the operator that may be ``half`` change together, because runtimes have
    no kernels for most mixtures of types that ONNX allows; ``WIDE_VARIABLES`` lists the exceptions.
    """
    if node.domain or node.op_type in KEPT:  # add_fp16_cast keeps 1
        return None
    schema = opset.schema(node.op_type, version)
    if schema is None or not is_known(node) or _is_untyped(node):
        return None
    if node.attributes.get_string("reduction", "none") != "none" and node.op_type in SCATTERS:
        return None
    type_lists = [constraint.allowed_type_strs for constraint in schema.type_constraints]
    if any(all(name.startswith(("seq(", "optional(")) for name in names) for names in type_lists):
        return None  # the sequence keeps its element type, which is that of the tensor
    allowed = {
        constraint.type_param_str
        for constraint in schema.type_constraints
        if f"tensor({half.name.lower()})" in constraint.allowed_type_strs
    }
    allowed -= WIDE_VARIABLES.get(node.op_type, set())
    input_types = _types(node.inputs, [formal.type_str for formal in schema.inputs])
    output_types = _types(node.outputs, [formal.type_str for formal in schema.outputs])
    places = [
        [index for index, type_ in group if type_ in allowed]
        for group in (input_types, output_types)
    ]
    return (places[0], places[1]) if places[0] else None


def _is_untyped(node: ir.Node) -> bool:
    """True if the type of a result is unknown, so that no Cast could restore it."""
    return any(value.type is None and value.name for value in node.outputs)


def _types(values: Sequence[ir.Value | None], formal: Sequence[str]) -> list[tuple[int, str]]:
    """Return ``(index, type variable)`` of each float32 tensor in ``values``.

    ``formal`` has the type variables of the schema; the last one may repeat.
    """
    return [
        (index, formal[min(index, len(formal) - 1)])
        for index, value in enumerate(values)
        if value is not None
        and value.dtype == WIDE
        and not isinstance(value.type, ir.SequenceType | ir.OptionalType)
        and formal
    ]
