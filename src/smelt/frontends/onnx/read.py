"""Read a ModelProto from whatever the caller has: paths, bytes, or text that is not a model."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import NamedTuple, TypeAlias

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

from smelt.errors import InvalidModel, ResourceLimit, UsageError
from smelt.frontends.onnx.embedded import SMALLEST_MAPPED, Data, Embedded
from smelt.frontends.onnx.mapped import map_file

Source: TypeAlias = "ir.Model | onnx.ModelProto | bytes | str | Path"

MAX_FILE = 2**31 - 1
"""The largest protobuf; larger models keep their weights as external data."""


class Read(NamedTuple):
    """A protobuf, and where its weights are.

    ``folder`` is the folder of external data, None without a file. ``proto`` holds marks for large
    weights ``embedded`` in the model.
    """

    proto: onnx.ModelProto
    folder: Path | None
    embedded: Embedded


def read_proto(source: onnx.ModelProto | bytes | str | Path) -> Read:
    """Return the protobuf of ``source``: itself, parsed bytes, or a file.

    Raises UsageError E609 if there is no such file, InvalidModel E301 if it is not a protobuf, E302
    if it holds no model, and ResourceLimit E503 or E512 if it is too large.
    """
    if isinstance(source, onnx.ModelProto):
        return Read(
            _with_graph_and_opset(source, "the ModelProto"), folder=None, embedded=Embedded()
        )
    if isinstance(source, bytes):
        return _parse(Embedded(source), "the bytes given", folder=None)
    try:
        path = Path(source)
    except TypeError as error:
        raise InvalidModel(
            "E301",
            f"{type(source).__name__} {str(source)[:60]!r} is not an ONNX model",
            fix="smelt.trace(function, *specs) converts a JAX function to a model"
            if callable(source)
            else "give a path, bytes, a ModelProto or an onnx_ir.Model",
            why="it is not a path, bytes or a model",
        ) from error
    return _parse(Embedded(_read_file(path)), repr(path.name), path.parent)


def _read_file(path: Path) -> Data:
    """Return the bytes of a regular file, mapped if it is large."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(
                "E609",
                f"{str(path)!r} is not a file",
                why="the path is a folder or a device",
                fix="give the path of the .onnx file",
            )
        if status.st_size > MAX_FILE:
            raise ResourceLimit(
                "E503",
                f"{path.name!r} has {status.st_size:,} bytes",
                fix="save its weights as external data",
                why="a protobuf holds at most 2 GiB",
            )
        return map_file(path) if status.st_size >= SMALLEST_MAPPED else path.read_bytes()
    except OSError as error:
        raise UsageError(
            "E609",
            f"cannot read {str(path)!r}",
            why=error.strerror or str(error),
            fix="check the path, and that you may read the file",
        ) from error
    except ValueError as error:
        raise UsageError(
            "E609",
            f"cannot read {str(path)!r}",
            why=str(error),
            fix="check the path: it holds a NUL character or the like",
        ) from error


def _parse(embedded: Embedded, name: str, folder: Path | None) -> Read:
    """Return the protobuf in the bytes ``embedded``; raises InvalidModel E301."""
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(embedded.without_weights())
    except (DecodeError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise InvalidModel(
            "E301",
            f"{name} is not an ONNX model, or is damaged",
            why=_reason(embedded.data, error),
            fix="check that the file is whole, and that it is ONNX",
        ) from error
    return Read(_with_graph_and_opset(proto, name), folder, embedded)


def _reason(data: Data, error: Exception) -> str:
    """Return why protobuf could not parse ``data``."""
    if not data:
        return "it is empty"
    return f"protobuf cannot parse its {len(data):,} bytes: {str(error) or 'damaged or too nested'}"


def _with_graph_and_opset(proto: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """Return ``proto``; raises InvalidModel if it has no graph (E302) or operator set (E306)."""
    if not proto.HasField("graph"):
        raise InvalidModel(
            "E302",
            f"{name} does not hold a graph",
            why="it parses as protobuf, but describes no model",
            fix="give the file of an ONNX model, such as model.onnx",
        )
    if not proto.opset_import:
        raise InvalidModel(
            "E306",
            f"{name} imports no operator set",
            why="the operator set says what each operator means",
            fix="set opset_import, for instance by exporting the model again",
        )
    return proto
