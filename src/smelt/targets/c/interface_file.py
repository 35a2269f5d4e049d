"""``NAME.json``: the names, types and shapes of a library's inputs and outputs, as the model says.

Names in the C files are cleaned and only comments, so what loads a library again reads this. It
repeats no size of the header; those are read from the header and must agree.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir.complex_pairs import COMPLEX
from smelt.runtime.input_ranges import Range, index_range
from smelt.runtime.interface import Interface, Port, interface_of

SCHEMA = "smelt.c/1"


def to_json(name: str, model: ir.Model) -> bytes:
    """The interface of ``model``, compiled as library ``name``, as a file."""
    interface = interface_of(model)
    limits = [index_range(value, {}) for value in model.graph.inputs]
    document = {
        "schema": SCHEMA,
        "name": name,
        "inputs": [_entry(*pair) for pair in zip(interface.inputs, limits, strict=True)],
        "outputs": [_entry(port, None) for port in interface.outputs],
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def _entry(port: Port, limits: Range | None) -> dict[str, Any]:
    assert port.dtype is not None  # the target refuses values of unknown type and size
    entry: dict[str, Any] = {
        "name": port.name,
        "dtype": port.dtype.name.lower(),
        "shape": [int(str(dim)) for dim in port.shape or ()],
    }
    if port.complex is not None:
        entry["complex"] = True
    if limits is not None:
        entry["range"] = list(limits)
    if port.default is not None:
        data = np.ascontiguousarray(port.default.numpy()).tobytes()
        entry["default"] = base64.b64encode(data).decode()
    return entry


def from_json(data: bytes, file: str) -> tuple[str, Interface, Mapping[str, Range]] | None:
    """The library's name, interface and ranges; None if the file is of another kind.

    Raises UsageError E616 if it claims to be of this kind, but is damaged.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        return None
    try:
        inputs = tuple(_port(entry) for entry in document["inputs"])
        outputs = tuple(_port(entry) for entry in document["outputs"])
        ranges = {
            str(entry["name"]): (int(entry["range"][0]), int(entry["range"][1]))
            for entry in document["inputs"]
            if "range" in entry
        }
        return str(document["name"]), Interface(inputs, outputs), ranges
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise UsageError(
            "E616", f"{file!r} is damaged", why=repr(error), fix="compile the model again"
        ) from error


def _port(entry: Mapping[str, Any]) -> Port:
    dtype = ir.DataType[str(entry["dtype"]).upper()]
    shape = tuple(int(dim) for dim in entry["shape"])
    if any(dim < 0 for dim in shape):
        raise ValueError("a negative size")
    default = None
    if "default" in entry:
        raw = base64.b64decode(entry["default"])
        default = ir.Tensor(np.frombuffer(raw, dtype.numpy()).reshape(shape), dtype=dtype)
    pairs_of = COMPLEX.get(dtype) if entry.get("complex") else None
    return Port(str(entry["name"]), dtype, shape, default=default, complex=pairs_of)
