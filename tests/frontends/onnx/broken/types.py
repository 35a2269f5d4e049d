"""Declared types that are empty or impossible."""

from __future__ import annotations

from collections.abc import Callable

import onnx
from frontends.onnx.broken.change import Broken, Cases, changed, graph
from onnx import TypeProto, helper


def _input(*changes: Callable[[TypeProto], object]) -> Broken:
    def change(model: onnx.ModelProto) -> None:
        for alter in changes:
            alter(model.graph.input[0].type)

    return changed(graph(), change)


def _also(kind: TypeProto) -> Broken:
    def change(model: onnx.ModelProto) -> None:
        model.graph.input.append(helper.make_value_info("z", kind))

    return changed(graph(), change)


CASES: Cases = {
    "an input without a type": changed(graph(), lambda m: m.graph.input[0].ClearField("type")),
    "an input with an empty type": _input(lambda t: t.Clear()),
    "an input without an element type": _input(lambda t: t.tensor_type.ClearField("elem_type")),
    "an input of element type 99": _input(lambda t: setattr(t.tensor_type, "elem_type", 99)),
    "an output without an element type": changed(
        graph(), lambda m: m.graph.output[0].type.tensor_type.ClearField("elem_type")
    ),
    "a sequence of nothing": _also(TypeProto(sequence_type=TypeProto.Sequence())),
    "an optional of nothing": _also(TypeProto(optional_type=TypeProto.Optional())),
    "a sparse input without an element type": _also(
        TypeProto(sparse_tensor_type=TypeProto.SparseTensor())
    ),
    "a map without a key type": _also(
        TypeProto(map_type=TypeProto.Map(value_type=helper.make_tensor_type_proto(1, [])))
    ),
    "a map keyed by floats": _also(
        TypeProto(
            map_type=TypeProto.Map(key_type=1, value_type=helper.make_tensor_type_proto(1, []))
        )
    ),
    "a map to nothing": _also(TypeProto(map_type=TypeProto.Map(key_type=7))),
}
