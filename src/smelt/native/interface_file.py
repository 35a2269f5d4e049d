"""``NAME.json``: the names, types and shapes of the inputs and outputs of compiled code.

Names in C files are sanitized and occur in comments only, so loading a library reads this file. It
repeats no size of a C header; sizes are read from the header and must agree. Each target has a
``schema`` of its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.errors import UsageError, damage
from smelt.ir.complex_pairs import COMPLEX
from smelt.ir.symbolic_dims.dim_texts import symbolic_dim
from smelt.ir.symbolic_dims.size_constraints import SizeCheck
from smelt.program.instruction import Program, RunSize
from smelt.runtime.input_ranges import Range, index_range
from smelt.runtime.interface import Interface, Port, interface_of
from smelt.runtime.run_bounds import RunBounds


def bounds_of(sizes: Iterable[RunSize]) -> RunBounds:
    """Return the least and the greatest value of each size, by its name in the model."""
    return {each.symbol or each.name: (each.size.low, each.size.high) for each in sizes}


def to_json(
    schema: str, name: str, model: ir.Model, program: Program, files: Mapping[str, bytes]
) -> bytes:
    """Return the interface of ``model``, compiled as library ``name``, as the bytes of the file.

    ``program`` lists the run-time sizes that callers pass and get back. ``files`` are the library's
    files; their digests show later whether a file was changed.
    """
    interface = interface_of(model)
    limits = [index_range(value, {}) for value in model.graph.inputs]
    document: dict[str, Any] = {
        "schema": schema,
        "name": name,
        "inputs": [_entry(*pair) for pair in zip(interface.inputs, limits, strict=True)],
        "outputs": [_entry(port, limits=None) for port in interface.outputs],
    }
    if interface.check is not None:
        document["constraints"] = list(interface.check.constraints)
    for word, sizes in (("sizes", program.input_sizes), ("lengths", program.returned_sizes)):
        bounds = bounds_of(sizes)
        if bounds:
            document[word] = [[size, low, high] for size, (low, high) in bounds.items()]
    document["files"] = {file: digest(data) for file, data in files.items()}
    return (json.dumps(document, indent=1) + "\n").encode()


def digest(data: bytes) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _entry(port: Port, limits: Range | None) -> dict[str, Any]:
    """Return one port as JSON: name, dtype, shape, range of integers, default."""
    assert port.dtype is not None  # legality checks refuse values of unknown type
    entry: dict[str, Any] = {
        "name": port.name,
        "dtype": port.dtype.name.lower(),
        "shape": [dim if isinstance(dim, int) else str(dim) for dim in port.shape or ()],
    }
    if port.complex is not None:
        entry["complex"] = True
    if limits is not None:
        entry["range"] = list(limits)
    if port.default is not None:
        data = np.ascontiguousarray(port.default.numpy()).tobytes()
        entry["default"] = base64.b64encode(data).decode()
    return entry


@dataclass(frozen=True)
class InterfaceFile:
    """The contents of the interface file.

    ``ranges`` has the valid indices of integer inputs, by name. ``sizes`` are the bounds of the
    run-time sizes that callers pass, ``lengths`` of those that a run returns.
    """

    name: str
    interface: Interface
    ranges: Mapping[str, Range]
    sizes: RunBounds
    lengths: RunBounds
    digests: Mapping[str, str]
    """SHA-256 by file of the library; empty in folders of earlier versions."""


def from_json(schema: str, data: bytes, file: str) -> InterfaceFile | None:
    """Return the contents of an interface file with ``schema``; None if it is another kind of file.

    Raises UsageError E616 if the schema is right but the contents are damaged.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("schema") != schema:
        return None
    try:
        inputs = tuple(_port(entry) for entry in document["inputs"])
        outputs = tuple(_port(entry) for entry in document["outputs"])
        ranges = {
            str(entry["name"]): (int(entry["range"][0]), int(entry["range"][1]))
            for entry in document["inputs"]
            if "range" in entry
        }
        interface = Interface(inputs, outputs, _check(inputs, document.get("constraints")))
        sizes, lengths = (_bounds(document.get(word, [])) for word in ("sizes", "lengths"))
        digests = {str(file): str(text) for file, text in document.get("files", {}).items()}
        return InterfaceFile(str(document["name"]), interface, ranges, sizes, lengths, digests)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
        raise UsageError(
            "E616", f"{file!r} is damaged", why=damage(error), fix="compile the model again"
        ) from error


def _check(inputs: Sequence[Port], constraints: list[str] | None) -> SizeCheck | None:
    """Return the check of the size constraints that the file lists, None if it lists none."""
    if constraints is None:
        return None
    return SizeCheck([(port.name, port.shape) for port in inputs], constraints)


def _bounds(entries: list[Any]) -> RunBounds:
    """Return the bounds by size; raises ValueError if they are no bounds."""
    bounds = {str(name): (int(low), int(high)) for name, low, high in entries}
    if any(not 0 <= low <= high for low, high in bounds.values()):
        raise ValueError("sizes out of bounds")
    return bounds


def _port(entry: Mapping[str, Any]) -> Port:
    """Return one port from its JSON entry; raises ValueError or KeyError for a bad entry."""
    dtype = ir.DataType[str(entry["dtype"]).upper()]
    shape = tuple(symbolic_dim(dim) if isinstance(dim, str) else int(dim) for dim in entry["shape"])
    if any(isinstance(dim, int) and dim < 0 for dim in shape):
        raise ValueError("a negative size")
    default = None
    if "default" in entry:
        raw = base64.b64decode(entry["default"])
        sizes = [int(str(dim)) for dim in shape]
        default = ir.Tensor(np.frombuffer(raw, dtype.numpy()).reshape(sizes), dtype=dtype)
    pairs_of = COMPLEX.get(dtype) if entry.get("complex") else None
    return Port(str(entry["name"]), dtype, shape, default=default, complex=pairs_of)
