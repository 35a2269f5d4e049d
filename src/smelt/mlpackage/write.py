"""Write a Package as the files of an ``.mlpackage`` folder; two writes give the same bytes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from smelt.mlpackage.description import description
from smelt.mlpackage.program import (
    Argument,
    Block,
    Constant,
    DictionaryType,
    Element,
    Function,
    ListType,
    Named,
    Operation,
    Package,
    Program,
    StateType,
    TensorType,
    TupleType,
    ValueType,
)
from smelt.mlpackage.weights import FILE_NAME, WeightFile, pack
from smelt.mlpackage.wire import encode

AUTHOR = "com.apple.CoreML"
MODEL_FILE = f"Data/{AUTHOR}/model.mlmodel"
WEIGHT_FILE = f"Data/{AUTHOR}/weights/weight.bin"
MANIFEST = "Manifest.json"

_IN_INTS = {Element.INT16, Element.UINT16, Element.INT32}
_IN_LONG_INTS = {Element.INT64, Element.UINT64}


class PackageFiles:
    """The files of ``package``: the model's bytes, and the weights as an iterator of pieces."""

    def __init__(self, package: Package) -> None:
        """Encode the program, and place the weights in their file; no weight is copied yet."""
        self.package = package
        self._weights = WeightFile()
        writer = _Writer(self._weights)
        self.model = writer.model(package)

    @property
    def has_weights(self) -> bool:
        """True if the program refers to the weight file."""
        return self._weights.size > 64

    @property
    def weight_bytes(self) -> int:
        """The size of the weight file."""
        return self._weights.size if self.has_weights else 0

    def weights(self) -> Iterator[bytes]:
        """Yield the bytes of the weight file."""
        return self._weights.pieces()

    def files(self) -> dict[str, bytes]:
        """Return all files by their paths below the package, with their bytes."""
        files = {MANIFEST: manifest(self.has_weights), MODEL_FILE: self.model}
        if self.has_weights:
            files[WEIGHT_FILE] = b"".join(self.weights())
        return files


def write(package: Package) -> dict[str, bytes]:
    """Return the files of ``package`` by their paths below the folder."""
    return PackageFiles(package).files()


def manifest(has_weights: bool) -> bytes:
    """Return the manifest, which names the model and the folder of weights.

    The identifiers are made from names, so that two writes give the same bytes.
    """
    items = {"model": ("CoreML Model Specification", "model.mlmodel")}
    if has_weights:
        items["weights"] = ("CoreML Model Weights", "weights")
    keys = {each: str(uuid.uuid5(uuid.NAMESPACE_URL, f"smelt:{each}")).upper() for each in items}
    entries = {
        keys[each]: {
            "author": AUTHOR,
            "description": description,
            "name": name,
            "path": f"{AUTHOR}/{name}",
        }
        for each, (description, name) in items.items()
    }
    document = {
        "fileFormatVersion": "1.0.0",
        "itemInfoEntries": entries,
        "rootModelIdentifier": keys["model"],
    }
    return json.dumps(document, indent=4, sort_keys=True).encode() + b"\n"


class _Writer:
    """Turns the dataclasses of a package into messages; large constants go to ``weights``."""

    def __init__(self, weights: WeightFile) -> None:
        """Start with the weight file to which constants with ``in_file`` are added."""
        self._weights = weights

    def model(self, package: Package) -> bytes:
        """Return the bytes of the file ``model.mlmodel``."""
        described = description(package)
        program = self._program(package.program)
        fields = {
            "specificationVersion": package.specification_version,
            "description": described,
            "mlProgram": program,
        }
        return encode("Model", fields)

    def _program(self, program: Program) -> bytes:
        """Return the message of a program."""
        fields: dict[str, Any] = {"version": program.version}
        fields["functions"] = {
            name: self._function(each) for name, each in program.functions.items()
        }
        return encode("Program", self._attributed(fields, program.attributes))

    def _function(self, function: Function) -> bytes:
        """Return the message of a function."""
        fields: dict[str, Any] = {
            "inputs": _named(function.inputs),
            "opset": function.opset,
            "block_specializations": {
                opset: self._block(block) for opset, block in function.blocks.items()
            },
        }
        return encode("Function", self._attributed(fields, function.attributes))

    def _block(self, block: Block) -> bytes:
        """Return the message of a block."""
        fields: dict[str, Any] = {
            "inputs": _named(block.inputs),
            "outputs": block.outputs,
            "operations": [self._operation(each) for each in block.operations],
        }
        return encode("Block", self._attributed(fields, block.attributes))

    def _operation(self, operation: Operation) -> bytes:
        """Return the message of an operation."""
        fields: dict[str, Any] = {"type": operation.type}
        if operation.inputs:
            fields["inputs"] = {
                name: self._arguments(arguments) for name, arguments in operation.inputs.items()
            }
        if operation.outputs:
            fields["outputs"] = _named(operation.outputs)
        if operation.blocks:
            fields["blocks"] = [self._block(each) for each in operation.blocks]
        return encode("Operation", self._attributed(fields, operation.attributes))

    def _arguments(self, arguments: Sequence[Argument]) -> bytes:
        """Return the message of the arguments of one parameter."""
        if len(arguments) == 1 and isinstance(arguments[0], str):
            return _name_argument(arguments[0])
        bindings = [
            {"name": each} if isinstance(each, str) else {"value": self._value(each)}
            for each in arguments
        ]
        return encode("Argument", {"arguments": bindings})

    def _attributed(
        self, fields: dict[str, Any], attributes: Mapping[str, Constant]
    ) -> dict[str, Any]:
        """Add ``attributes`` to ``fields``, if there are any, and return ``fields``."""
        if attributes:
            fields["attributes"] = {name: self._value(each) for name, each in attributes.items()}
        return fields

    def _value(self, constant: Constant) -> bytes:
        """Return the message of a constant."""
        kind = constant.type
        if isinstance(kind, TensorType) and constant.in_file:
            offset = self._weights.add(constant.value, kind.element)
            place = {"fileName": FILE_NAME, "offset": offset}
            return encode("Value", {"type": _type(kind), "blobFileValue": place})
        if isinstance(kind, TensorType) and isinstance(constant.value, str):
            return _text_value(constant.value)
        return encode("Value", {"type": _type(kind), "immediateValue": self._immediate(constant)})

    def _immediate(self, constant: Constant) -> dict[str, Any]:
        """Return the message of a constant that is stored in the program."""
        kind = constant.type
        if isinstance(kind, TensorType):
            return {"tensor": _tensor(constant.value, kind.element)}
        if isinstance(kind, ListType | TupleType):
            name = "list" if isinstance(kind, ListType) else "tuple"
            return {name: {"values": [self._value(each) for each in constant.value]}}
        pairs = [
            {"key": self._value(key), "value": self._value(value)} for key, value in constant.value
        ]
        return {"dictionary": {"values": pairs}}


def _tensor(value: Any, element: Element) -> dict[str, Any]:
    """Return the message of the elements of a tensor."""
    if element == Element.STRING:
        texts = [value] if isinstance(value, str) else np.asarray(value).ravel().tolist()
        return {"strings": {"values": texts}}
    array = np.asarray(value)
    if element == Element.FLOAT32:
        return {"floats": {"values": array.ravel()}}
    if element == Element.FLOAT64:
        return {"doubles": {"values": array.ravel()}}
    if element == Element.BOOL:
        return {"bools": {"values": array.ravel()}}
    if element in _IN_INTS or element in _IN_LONG_INTS:
        return {"ints" if element in _IN_INTS else "longInts": {"values": array.ravel()}}
    return {"bytes": {"values": pack(array, element)}}


@cache
def _text_value(text: str) -> bytes:
    """Return the message of a scalar text."""
    tensor = {"strings": {"values": [text]}}
    return encode(
        "Value",
        {"type": _type(TensorType(Element.STRING)), "immediateValue": {"tensor": tensor}},
    )


def _name_argument(name: str) -> bytes:
    """Return the message of one argument that is a name."""
    return encode("Argument", {"arguments": [{"name": name}]})


def _named(values: Sequence[Named]) -> list[bytes]:
    """Return the messages of names with types."""
    return [
        encode("NamedValueType", {"name": each.name, "type": _type(each.type)}) for each in values
    ]


@cache
def _type(kind: ValueType) -> bytes:
    """Return the message of a type."""
    return encode("ValueType", _type_fields(kind))


def _type_fields(kind: ValueType) -> dict[str, Any]:
    """Return the fields of a type: one key, which names the alternative."""
    if isinstance(kind, TensorType):
        dims = kind.dims
        rank = -1 if dims is None else len(dims)
        fields: dict[str, Any] = {"dataType": int(kind.element), "rank": rank}
        if dims:
            fields["dimensions"] = [_dimension(each) for each in dims]
        return {"tensorType": fields}
    if isinstance(kind, ListType):
        return {"listType": {"type": _type(kind.element), "length": _dimension(kind.length)}}
    if isinstance(kind, TupleType):
        return {"tupleType": {"types": [_type(each) for each in kind.elements]}}
    if isinstance(kind, DictionaryType):
        return {"dictionaryType": {"keyType": _type(kind.key), "valueType": _type(kind.value)}}
    assert isinstance(kind, StateType)
    return {"stateType": {"wrappedType": _type(kind.wrapped)}}


def _dimension(size: int | None) -> dict[str, Any]:
    """Return the message of a dim; None is an unknown size."""
    return {"unknown": {"variadic": False}} if size is None else {"constant": {"size": size}}
