"""Check declared types of values: element types must exist, and collections need a content type.

Shapes may be missing, and negative sizes mean unknown: exporters write both, and every runtime
accepts them.
"""

from __future__ import annotations

import onnx
import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.frontends.onnx.checks.walk import Scopes
from smelt.ir import scope
from smelt.ir.names import values_of
from smelt.ir.opaque_types import opaque_type_of

_ELEMENTS = frozenset(onnx.TensorProto.DataType.values()) - {0}
_KEYS = frozenset(
    getattr(onnx.TensorProto, name)
    for name in ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "STRING")
)


def check_value_types(scopes: Scopes) -> None:
    """Raise InvalidModel E318 for the first impossible declared type."""
    for outer in scopes:
        infos: list[onnx.ValueInfoProto] = []
        if outer.graph is not None:
            infos = [*outer.graph.input, *outer.graph.output, *outer.graph.value_info]
        elif outer.function is not None:
            infos = [*outer.function.value_info]
        for info in infos:
            why = _fault_of_type(info.type)
            if why:
                at = f"{outer}: value {info.name!r}"
                raise InvalidModel(
                    "E318",
                    "a declared type has no element type",
                    at=at,
                    why=why,
                    fix="declare an element type, or remove the declaration",
                )


def _fault_of_type(declared: onnx.TypeProto) -> str:
    """Return why a type is impossible, "" if it is valid; protobuf limits the nesting."""
    kind = declared.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(declared, kind)
        # A bare tensor_type declares "some tensor" for a value within the graph.
        if tensor.elem_type not in _ELEMENTS and (tensor.elem_type or tensor.HasField("shape")):
            return f"{tensor.elem_type} is not an element type"
        return ""
    if kind == "map_type":
        if declared.map_type.key_type not in _KEYS:
            return "the keys of a map must be integers or strings"
        return _fault_inside(declared.map_type.value_type, "a map")
    if kind == "sequence_type":
        return _fault_inside(declared.sequence_type.elem_type, "a sequence")
    if kind == "optional_type":
        return _fault_inside(declared.optional_type.elem_type, "an optional")
    return ""


def _fault_inside(declared: onnx.TypeProto, owner: str) -> str:
    """Return why the content type of a collection is impossible, "" if it is valid."""
    if declared.WhichOneof("value") is None:
        return f"{owner} does not declare the type of its content"
    return _fault_of_type(declared)


def check_inputs(model: ir.Model) -> None:
    """Raise InvalidModel E318 for a model input without a type, E309 or E317 for a wrong default.

    The types of all other values follow from those of the inputs.
    """
    for value in model.graph.inputs:
        if opaque_type_of(value) is not None:
            continue
        if value.type is None or _element(value) == ir.DataType.UNDEFINED:
            raise InvalidModel(
                "E318",
                f"the input {value.name!r} has no type",
                fix="export the model again with typed inputs",
                why="ONNX demands an element type for each input of a model",
            )
        if value.const_value is not None:
            _check_default(value, value.const_value)


def forget_impossible_sizes(model: ir.Model) -> None:
    """Make declared negative sizes unknown, as runtimes read them."""
    for graph in scope.graphs(model):
        for value in (*values_of(graph), *graph.outputs):
            shape = value.shape
            if shape is not None and any(isinstance(dim, int) and dim < 0 for dim in shape):
                dims = [None if isinstance(dim, int) and dim < 0 else dim for dim in shape]
                value.shape = ir.Shape(dims)


def _element(value: ir.Value) -> ir.DataType | None:
    """Return the element type of a tensor value, None for other values."""
    return value.dtype if isinstance(value.type, ir.TensorType) else None


def _check_default(value: ir.Value, default: ir.TensorProtocol) -> None:
    """Raise InvalidModel E309 or E317 if the default of an input has another type or shape."""
    what = f"the input {value.name!r} and its default have different types"
    if default.dtype != value.dtype:
        why = f"the input is {value.dtype}, the default {default.dtype}"
        raise InvalidModel(
            "E309",
            what,
            why=why,
            fix="export the model again, or give the input the type of its default",
        )
    shape = value.shape
    fits = shape is None or (
        len(shape) == len(default.shape)
        and all(
            not isinstance(dim, int) or dim < 0 or dim == size
            for dim, size in zip(shape, default.shape, strict=True)
        )
    )
    if not fits:
        why = f"the input is {shape}, the default {default.shape}"
        raise InvalidModel(
            "E317", what, why=why, fix="correct the declared shape, or remove it: smelt infers it"
        )
