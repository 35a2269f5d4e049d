"""From whatever the caller has to a ModelProto: paths, bytes, text that is no model at all."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TypeAlias

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

from smelt.errors import InvalidModel, ResourceLimit, UsageError

Source: TypeAlias = "ir.Model | onnx.ModelProto | bytes | str | Path"

MAX_FILE = 2**31 - 1
"""Protobuf cannot hold more; larger models keep their weights in files beside them."""


def read_proto(source: onnx.ModelProto | bytes | str | Path) -> tuple[onnx.ModelProto, Path | None]:
    """The protobuf, and the folder that external data may come from, None without a file.

    Raises UsageError E609 if there is no such file, InvalidModel E301 if it is no protobuf, E302 if
    it holds no model.
    """
    if isinstance(source, onnx.ModelProto):
        return _checked(source, "the ModelProto"), None
    if isinstance(source, bytes):
        return _checked(_parse(source, "the bytes given"), "the bytes given"), None
    path = Path(source)
    return _checked(_parse(_read_file(path), repr(path.name)), repr(path.name)), path.parent


def _read_file(path: Path) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UsageError("E609", f"{str(path)!r} is not a file")
        if status.st_size > MAX_FILE:
            raise ResourceLimit(
                "E503",
                f"{path.name!r} has {status.st_size:,} bytes; a protobuf holds at most 2 GiB",
                fix="save its weights as external data",
            )
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            "E609", f"cannot read {str(path)!r}", why=error.strerror or str(error)
        ) from error
    except ValueError as error:
        raise UsageError("E609", f"cannot read {str(path)!r}", why=str(error)) from error


def _parse(data: bytes, name: str) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except (DecodeError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise InvalidModel(
            "E301",
            f"{name} is no ONNX model, or a damaged one",
            why=_reason(data, error),
            fix="check that the file is whole, and that it is ONNX",
        ) from error
    return proto


def _reason(data: bytes, error: Exception) -> str:
    if not data:
        return "it is empty"
    return f"protobuf cannot parse its {len(data):,} bytes: {str(error) or 'damaged or too nested'}"


def _checked(proto: onnx.ModelProto, name: str) -> onnx.ModelProto:
    if not proto.HasField("graph"):
        raise InvalidModel(
            "E302", f"{name} holds no graph", why="it parses as protobuf, but describes no model"
        )
    if not proto.opset_import:
        raise InvalidModel("E306", f"{name} imports no operator set")
    return proto
