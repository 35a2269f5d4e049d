"""Build packages of one function from a few words, for the tests of the Core ML reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.frontends.coreml.load import model_of
from smelt.mlpackage.interface import Interface
from smelt.mlpackage.program import (
    Block,
    Constant,
    Element,
    Function,
    Named,
    Operation,
    Package,
    Program,
    TensorType,
    ValueType,
)
from smelt.runtime.runner import run

_OTHERS = (Element.BFLOAT16, Element.FLOAT8E4M3FN, Element.FLOAT8E5M2)
ELEMENTS = {
    each.numpy.name: each
    for each in Element
    if (each.bits >= 8 or each == Element.BOOL) and each not in _OTHERS
}


def element_of(array: np.ndarray) -> Element:
    """Return the element type of an array."""
    return Element.STRING if array.dtype.kind == "U" else ELEMENTS[array.dtype.name]


def constant(value: Any, element: Element | None = None) -> Constant:
    """Return a constant: ints as int32, floats as float32, as coremltools writes them."""
    if isinstance(value, Constant):
        return value
    array = np.asarray(value)
    if not isinstance(value, np.ndarray | np.generic):
        array = array.astype({"i": np.int32, "f": np.float32}.get(array.dtype.kind, array.dtype))
        array = array.astype(np.int32) if array.size == 0 else array
    kind = TensorType(element or element_of(array), array.shape)
    return Constant(kind, str(array) if array.dtype.kind == "U" and not array.shape else array)


def operation(
    kind: str, outputs: Mapping[str, ValueType], blocks: Sequence[Block] = (), **inputs: Any
) -> Operation:
    """Return an operation; an argument is a name ("%x"), a constant, or a list of those."""

    def argument(value: Any) -> Any:
        """Return one argument."""
        return value[1:] if isinstance(value, str) and value[:1] == "%" else constant(value)

    arguments = {
        name: [argument(each) for each in value]
        if isinstance(value, list) and any(isinstance(e, str | Constant) for e in value)
        else [argument(value)]
        for name, value in inputs.items()
    }
    return Operation(kind, arguments, [Named(n, t) for n, t in outputs.items()], blocks)


def package(
    inputs: Mapping[str, ValueType],
    operations: Sequence[Operation],
    outputs: Sequence[str],
    ios: int = 17,
) -> Package:
    """Return a package with one function ``main``."""
    opset = f"CoreML{ios - 10}"
    block = Block(operations, outputs)
    named = [Named(name, kind) for name, kind in inputs.items()]
    function = Function(named, opset, {opset: block})
    return Package(ios - 9, Program({"main": function}), {"main": Interface([], [])})


def type_of(array: np.ndarray) -> TensorType:
    """Return the type of an array."""
    return TensorType(element_of(array), array.shape)


def read_one(
    kind: str,
    feeds: Mapping[str, np.ndarray],
    results: Sequence[ValueType],
    ios: int,
    **inputs: Any,
) -> ir.Model:
    """Return the Model of a program of one operation."""
    outputs = {f"y{i}": each for i, each in enumerate(results)}
    one = operation(kind, outputs, **inputs)
    types = {name: type_of(array) for name, array in feeds.items()}
    return model_of(package(types, [one], list(outputs), ios), "main")


def run_one(
    kind: str,
    feeds: Mapping[str, np.ndarray],
    results: Sequence[ValueType],
    ios: int,
    **inputs: Any,
) -> tuple[np.ndarray, ...]:
    """Return the results of a program of one operation, read and run."""
    model = read_one(kind, feeds, results, ios, **inputs)
    return tuple(
        np.asarray(y) for y in run(model, [feeds[v.name or ""] for v in model.graph.inputs])
    )
