"""Read files of ``numpy.savez``: uncompressed members are mapped, others are read on access."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.frontends.onnx.mapped import map_file

_LOCAL_HEADER = 30
"""The length in bytes of a zip member's header before its name."""

_READ: dict[tuple[int, int], Callable[[Any], tuple[tuple[int, ...], bool, np.dtype]]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def open_npz(path: Path) -> dict[str, ir.TensorProtocol]:
    """Return the arrays of one file; raises InvalidModel E341 if it is damaged or holds objects.

    NumPy writes foreign types such as bfloat16 as bytes without a type. Those are returned as uint8
    with their item size as a last dim, and marked as ``RAW``.
    """
    tensors: dict[str, ir.TensorProtocol] = {}
    try:
        data = map_file(path)
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                tensors[name] = _tensor(path, archive, member, data)
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        raise InvalidModel(
            "E341",
            f"cannot read {path.name!r}",
            why=str(error),
            fix="write it by numpy.savez, without pickled objects",
        ) from error
    return tensors


RAW = "raw"
"""In the ``meta`` of a tensor: the item size of an unknown type."""


def _tensor(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, data: Any) -> Any:
    """Return one member as a tensor: mapped, or lazy if it is compressed or in column order."""
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in _READ:
            raise ValueError(f"{member.filename!r} has the unknown format version {version}")
        shape, fortran, dtype = _READ[version](stream)
        offset = stream.tell()
    if dtype.hasobject or dtype.kind not in "biufcV" or dtype.names:
        raise ValueError(f"{member.filename!r} does not contain numbers: write only weights")
    raw = dtype.itemsize if dtype.kind == "V" else 0
    if raw:
        shape, dtype = (*shape, raw), np.dtype(np.uint8)
    if fortran or member.compress_type != zipfile.ZIP_STORED:
        read = partial(_read, path, member.filename, bool(raw))
        kind = ir.DataType.from_numpy(dtype)
        tensor: Any = ir.LazyTensor(read, kind, ir.Shape(shape), name=member.filename)
    else:
        start = _begin(data, member) + offset
        array = np.frombuffer(data, dtype, int(np.prod(shape, dtype=np.int64)), start)
        tensor = ir.Tensor(array.reshape(shape), name=member.filename)
    if raw:
        tensor.meta[RAW] = raw
    return tensor


def _begin(data: Any, member: zipfile.ZipInfo) -> int:
    """Return the offset of a member's bytes, after its header, name and extra field.

    The header of 30 bytes has the length of the name at 26, and that of the extra field at 28.
    """
    head = data[member.header_offset : member.header_offset + _LOCAL_HEADER]
    name, extra = int.from_bytes(head[26:28], "little"), int.from_bytes(head[28:30], "little")
    return member.header_offset + _LOCAL_HEADER + name + extra


def _read(path: Path, name: str, raw: bool) -> ir.Tensor:
    """Return a member read from the file; raw elements become bytes along a last dim."""
    with zipfile.ZipFile(path) as archive, archive.open(name) as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
    array = np.ascontiguousarray(array)
    return ir.Tensor(array.view(np.uint8).reshape(*array.shape, -1) if raw else array)
