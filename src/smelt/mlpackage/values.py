"""Read the types and constants of a MIL program from its messages and the weight file."""

from __future__ import annotations

import struct
from math import prod
from typing import Any

import numpy as np

from smelt.errors import InvalidModel, ResourceLimit
from smelt.mlpackage.folder import WeightFiles
from smelt.mlpackage.program import (
    Constant,
    DictionaryType,
    Element,
    ListType,
    StateType,
    TensorType,
    TupleType,
    ValueType,
)
from smelt.mlpackage.weights import ALIGNMENT, SENTINEL, STORED, unpack

Fields = dict[str, Any]

MAX_ELEMENTS = 1 << 40
"""The most elements of a tensor; a file with more is damaged or hostile."""
MAX_DIM = (1 << 31) - 1
"""The largest size of a dim."""

RECORD = struct.Struct("<IIQQ")
"""Sentinel, element type, size in bytes and offset of the data of one weight."""


def type_of(fields: Fields) -> ValueType:
    """Return the type in a ``ValueType`` message; raises InvalidModel E302, ResourceLimit E501."""
    if "tensorType" in fields:
        return _tensor_type(fields["tensorType"])
    if "listType" in fields:
        inner = fields["listType"]
        return ListType(type_of(inner.get("type", {})), _dim(inner.get("length", {})))
    if "tupleType" in fields:
        return TupleType(tuple(map(type_of, fields["tupleType"].get("types", ()))))
    if "dictionaryType" in fields:
        inner = fields["dictionaryType"]
        return DictionaryType(
            type_of(inner.get("keyType", {})), type_of(inner.get("valueType", {}))
        )
    if "stateType" in fields:
        return StateType(type_of(fields["stateType"].get("wrappedType", {})))
    raise damaged("a value has no type")


def _tensor_type(fields: Fields) -> TensorType:
    """Return a tensor type."""
    number = fields.get("dataType", 0)
    try:
        element = Element(number)
    except ValueError:
        raise damaged(f"the element type {number} does not exist") from None
    rank = fields.get("rank", 0)
    dims = tuple(map(_dim, fields.get("dimensions", ())))
    if rank < 0:
        return TensorType(element, None)
    if rank != len(dims):
        raise damaged(f"a tensor of rank {rank} has {len(dims)} dims")
    known = [dim for dim in dims if dim is not None]
    if prod(known) > MAX_ELEMENTS:
        raise ResourceLimit(
            "E501",
            f"a tensor of {' x '.join(map(str, known))} elements",
            why="no machine stores it",
            fix="the file is damaged; copy it again",
        )
    return TensorType(element, dims)


def _dim(fields: Fields) -> int | None:
    """Return a size; None if it is unknown."""
    if "constant" not in fields:
        return None
    size: int = fields["constant"].get("size", 0)
    if not 0 <= size <= MAX_DIM:
        raise damaged(f"a dim of {size} elements")
    return size


def constant_of(fields: Fields, files: WeightFiles) -> Constant:
    """Return the constant in a ``Value`` message; its bytes are in the message or in ``files``."""
    kind = type_of(fields.get("type", {}))
    if "blobFileValue" in fields:
        place = fields["blobFileValue"]
        if not isinstance(kind, TensorType) or kind.dims is None or None in kind.dims:
            raise damaged("a value in the weight file has no tensor type of known sizes")
        value = _stored(kind, place.get("fileName", ""), place.get("offset", 0), files)
        return Constant(kind, value, in_file=True)
    content = fields.get("immediateValue", {})
    if isinstance(kind, TensorType):
        return Constant(kind, _immediate(kind, content.get("tensor", {})))
    if isinstance(kind, ListType | TupleType):
        items = content.get("list", content.get("tuple", {})).get("values", ())
        return Constant(kind, [constant_of(item, files) for item in items])
    if isinstance(kind, DictionaryType):
        pairs = content.get("dictionary", {}).get("values", ())
        entries = [
            (constant_of(each.get("key", {}), files), constant_of(each.get("value", {}), files))
            for each in pairs
        ]
        return Constant(kind, entries)
    raise damaged("a state cannot be a constant")


_FIELDS = {"floats": "f", "doubles": "f", "ints": "iu", "longInts": "iu", "bools": "b"}
"""The fields of a ``TensorValue`` with numbers, and the kinds of NumPy types that they hold."""


def _immediate(kind: TensorType, fields: Fields) -> Any:
    """Return the array, or for a scalar string the text, in a ``TensorValue`` message."""
    element, dims = kind.element, kind.dims
    if dims is None or None in dims:
        raise damaged("a constant has an unknown size")
    shape = tuple(dim for dim in dims if dim is not None)
    count = prod(shape)
    if element == Element.STRING:
        texts = fields.get("strings", {}).get("values", [])
        if len(texts) != count:
            raise damaged(f"a constant of {count} texts holds {len(texts)}")
        return texts[0] if not shape else np.array(texts, np.str_).reshape(shape)
    if "bytes" in fields:
        return _from_bytes(fields["bytes"].get("values", b""), element, count).reshape(shape)
    for name, kinds in _FIELDS.items():
        if name in fields and element.numpy.kind in kinds:
            numbers = fields[name].get("values", np.zeros(0))
            if numbers.size != count:
                raise damaged(f"a constant of {count} elements holds {numbers.size}")
            array: np.ndarray = numbers.astype(element.numpy).reshape(shape)
            return array
    if count == 0:
        return np.zeros(shape, element.numpy)
    raise damaged(f"a constant of type {element.name.lower()} holds {sorted(fields) or 'nothing'}")


def _from_bytes(data: Any, element: Element, count: int) -> np.ndarray:
    """Return ``count`` elements that are packed in ``data``, the lowest bits first."""
    if element.bits == 0:
        raise damaged("a constant of texts is stored as bytes")
    needed = -(-count * element.bits // 8)
    if len(data) != needed:
        raise damaged(f"a constant of {needed} bytes holds {len(data)}")
    return unpack(data, element, count)


def _stored(kind: TensorType, name: str, offset: int, files: WeightFiles) -> np.ndarray:
    """Return the array whose record is at ``offset`` in the weight file ``name``.

    Raises InvalidModel E314 for a record that is missing, of another type or size, or whose data
    lie outside of the file.
    """
    data = files.data(name)
    shape = tuple(dim for dim in kind.dims or () if dim is not None)
    count, element = prod(shape), kind.element

    def wrong(why: str) -> InvalidModel:
        """Return the error for this weight."""
        return InvalidModel(
            "E314",
            "a weight is not where the model says",
            at=f"{name}, offset {offset:,}",
            why=why,
            fix="copy the package again, whole, with its weight file",
        )

    if offset < 0 or offset % ALIGNMENT or offset + RECORD.size > len(data):
        raise wrong(f"the file has {len(data):,} bytes, and records begin at multiples of 64")
    sentinel, number, size, start = RECORD.unpack_from(data, offset)
    if sentinel != SENTINEL:
        raise wrong("no record begins there")
    if STORED.get(element) != number:
        raise wrong(f"the record has elements of type {number}, not {element.name.lower()}")
    if size != -(-count * element.bits // 8):
        raise wrong(f"the record has {size:,} bytes for {count:,} elements of {element.bits} bits")
    if start + size > len(data):
        raise wrong(f"its data end at {start + size:,} in a file of {len(data):,} bytes")
    view = memoryview(data)[start : start + size]
    return _from_bytes(view, element, count).reshape(shape)


def damaged(why: str) -> InvalidModel:
    """Return error E302: the file cannot be read as a program, because of ``why``."""
    fix = "copy the file again, or save the model again"
    return InvalidModel("E302", "the Core ML model cannot be read", why=why, fix=fix)
