"""The element types that ONNX has; few ONNX operators take types of fewer than 16 bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax import compat
from smelt.ir.floats import is_half
from smelt.ir.opset import schema
from smelt.ir.opsets.versions import TRACED

NARROW = frozenset(
    dtype
    for dtype in ir.DataType
    if (dtype.is_floating_point() and dtype.bitwidth <= 8)
    or (dtype.is_integer() and dtype.bitwidth < 8)
)
"""Element types that most operators of ONNX do not accept."""


MOVES = frozenset(
    {"Concat", "Expand", "Gather", "GatherElements", "GatherND", "Pad", "Reshape"}
    | {
        "ScatterElements",
        "ScatterND",
        "Slice",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
        "Where",
    }
)
"""Operators that only move elements (a Scatter with a reduction computes, too)."""


def moved_as(
    op_type: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, object]
) -> ir.DataType | None:
    """Return the wider type in which ``op_type`` may move its narrow ``inputs``.

    The wider type holds every value of the narrow one. None if ``op_type`` computes with elements,
    or if the inputs have no single narrow type.
    """
    if op_type not in MOVES or attributes.get("reduction", "none") not in ("none", None):
        return None
    narrow = {value.dtype for value in inputs if value is not None and value.dtype in NARROW}
    if len(narrow) != 1:
        return None
    name = narrow.pop().name
    if name == "FLOAT8E8M0":
        return None  # Runtimes round what they cast to it differently.
    if name.startswith("FLOAT"):
        return ir.DataType.FLOAT16
    return ir.DataType.UINT8 if name.startswith("U") else ir.DataType.INT8


def has_onnx_type(aval: compat.Aval) -> bool:
    """True if ``aval`` is an array of an element type of ONNX; complex types do not count."""
    dtype = getattr(aval, "dtype", None)
    if dtype is None or compat.is_extended(dtype) or np.dtype(dtype).kind == "c":
        return False
    try:
        ir.DataType.from_numpy(np.dtype(dtype))
    except TypeError:
        return False
    return True


def refusal(op_type: str, inputs: Sequence[ir.Value | None], opset: int) -> str:
    """Return why ``op_type`` does not accept the types of ``inputs``; empty if it does."""
    for position, value in enumerate(inputs):
        if value is None or value.dtype not in NARROW:
            continue
        assert value.dtype is not None
        if str(ir.TensorType(value.dtype)).lower() not in _types(op_type, position, opset):
            return f"{op_type} of ONNX opset {opset} does not take {value.dtype.name.lower()}"
    return ""


def supporting_opset(op_type: str, inputs: Sequence[ir.Value | None], opset: int) -> int | None:
    """Return the first opset after ``opset`` in which ``op_type`` takes ``inputs``, or None."""
    later = range(opset + 1, TRACED.stop)
    return next((number for number in later if not refusal(op_type, inputs, number)), None)


@cache
def _types(op_type: str, position: int, opset: int) -> frozenset[str]:
    """Return the element types that ONNX allows for one input."""
    operator_schema = schema(op_type, opset)
    if operator_schema is None:
        return frozenset()
    formal = operator_schema.inputs[min(position, len(operator_schema.inputs) - 1)]
    return frozenset(
        text.removeprefix("tensor(").removesuffix(")").lower() for text in formal.types
    )


def halves_as_jax_arrays(values: Sequence[Any]) -> list[Any]:
    """Return ``values`` with each NumPy array of 16-bit floats as a JAX array."""
    import jax.numpy as jnp

    halves = [isinstance(value, np.ndarray) and is_half(value.dtype) for value in values]
    return [
        jnp.asarray(value) if half else value for value, half in zip(values, halves, strict=True)
    ]
