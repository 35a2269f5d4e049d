"""Check every tensor of a protobuf before memory is allocated for it.

Dims must be possible, the data must have the length that they need, and external data must lie in
the model's folder, reached without links. This stops known attacks on model files: ``..`` and
absolute paths, symlinks and hardlinks, pipes, offsets beyond the file, keys that become attributes,
and lengths that make the reader allocate without limit.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import onnx
import onnx_ir as ir

from smelt.errors import InvalidModel, ResourceLimit, SmeltError, UsageError
from smelt.frontends.onnx.checks.sparse import check_sparse
from smelt.frontends.onnx.checks.tensor_data import FIELDS, check_data, holds_data
from smelt.frontends.onnx.checks.walk import Scopes
from smelt.frontends.onnx.embedded import Embedded

EXTERNAL_KEYS = frozenset({"location", "offset", "length", "checksum"})
MAX_ELEMENTS = 2**40
"""A tensor with more elements counts as an attack."""


def check_tensors(
    proto: onnx.ModelProto, scopes: Scopes, folder: Path | None, embedded: Embedded
) -> None:
    """Raise E311, E313, E314 or E501 for the first tensor whose data does not fit it."""
    attributes = [
        attribute for function in proto.functions for attribute in function.attribute_proto
    ]
    attributes += [attribute for scope in scopes for attribute in scope.attributes]
    graphs = [scope.graph for scope in scopes if scope.graph is not None]
    for tensor in _field_tensors(graphs, attributes, "initializer", "t", "tensors"):
        check_tensor(tensor, folder, embedded)
    kinds = ("sparse_initializer", "sparse_tensor", "sparse_tensors")
    for sparse in _field_tensors(graphs, attributes, *kinds):
        check_tensor(sparse.values, folder, embedded)
        check_tensor(sparse.indices, folder, embedded)
        check_sparse(sparse)


def _field_tensors(
    graphs: Iterable[onnx.GraphProto],
    attributes: Iterable[onnx.AttributeProto],
    in_graph: str,
    single: str,
    several: str,
) -> Iterator[Any]:
    """Yield the tensors in the fields of these names.

    ``in_graph`` is a field of graphs; ``single`` and ``several`` are fields of attributes.
    """
    for graph in graphs:
        yield from getattr(graph, in_graph)
    for attribute in attributes:
        if attribute.HasField(single):
            yield getattr(attribute, single)
        yield from getattr(attribute, several)


def check_tensor(tensor: onnx.TensorProto, folder: Path | None, embedded: Embedded) -> None:
    """Raise E311, E313, E314 or E501 if a claim of ``tensor`` does not hold."""
    at = f"tensor {tensor.name!r} {list(tensor.dims)}"
    dtype = _element_type(tensor, at)
    count = _element_count(tensor, at)
    if embedded.is_mark(tensor):
        check_data(tensor, dtype, count, at, embedded.raw(tensor))
    elif tensor.data_location == onnx.TensorProto.EXTERNAL:
        _check_only_external(tensor, at)
        _check_external(tensor, (count * dtype.bitwidth + 7) // 8, folder, at)
    else:
        raw = tensor.raw_data if tensor.HasField("raw_data") else None
        check_data(tensor, dtype, count, at, raw)


def _element_type(tensor: onnx.TensorProto, at: str) -> ir.DataType:
    """Return the element type of ``tensor``; raises InvalidModel E311 if it has none."""
    try:
        dtype = ir.DataType(tensor.data_type)
    except ValueError as error:
        why = f"{tensor.data_type} is not a data type of ONNX"
        raise InvalidModel(
            "E311",
            "a tensor has no element type",
            at=at,
            why=why,
            fix="export the model again, or set the data_type of the tensor",
        ) from error
    if dtype == ir.DataType.UNDEFINED:
        raise InvalidModel(
            "E311",
            "a tensor has no element type",
            at=at,
            why="its data_type is UNDEFINED",
            fix="export the model again, or set the data_type of the tensor",
        )
    return dtype


def _element_count(tensor: onnx.TensorProto, at: str) -> int:
    """Return the number of elements of ``tensor``.

    Raises InvalidModel E311 for a segment and for negative dims, ResourceLimit E501 beyond
    ``MAX_ELEMENTS``.
    """
    if tensor.HasField("segment"):
        why = "it is a segment of a larger tensor, and no model format joins segments"
        raise InvalidModel(
            "E311", "a tensor is incomplete", at=at, why=why, fix="copy or download the file again"
        )
    if any(dim < 0 for dim in tensor.dims):
        raise InvalidModel(
            "E311",
            "a tensor has a negative dimension",
            at=at,
            why="the size of a dimension is a number of elements",
            fix="export the model again, or correct the dims of the tensor",
        )
    count: int = math.prod(tensor.dims)
    if count > MAX_ELEMENTS:
        raise ResourceLimit(
            "E501",
            f"a tensor declares {count:,} elements",
            at=at,
            why="no machine has the memory for them",
            fix="export the model again: the dims of the tensor are wrong",
        )
    return count


def _check_only_external(tensor: onnx.TensorProto, at: str) -> None:
    """Raise InvalidModel E314 if a tensor with external data holds data, too."""
    present = [name for name in FIELDS if holds_data(tensor, name)]
    if present:
        raise InvalidModel(
            "E314",
            "a tensor has its data in the model and in an external file",
            at=at,
            why=f"it holds {present[0]}, too",
            fix="export the model again with its data in one place",
        )


def _check_external(tensor: onnx.TensorProto, nbytes: int, folder: Path | None, at: str) -> None:
    """Raise E313, E314 or E613 unless external data of ``nbytes`` bytes lies in the folder."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    unknown = sorted(set(entries) - EXTERNAL_KEYS)
    if unknown or "location" not in entries:
        raise _bad_description(f"unknown key {unknown[0]!r}" if unknown else "no location", at)
    if folder is None:
        raise UsageError(
            "E613",
            "the model has weights in other files, and its folder is not known",
            at=at,
            fix="load it from its path",
            why="the paths of weight files are relative to the folder of the model",
        )
    offset, length = (_number(entries.get(key, ""), key, at) for key in ("offset", "length"))
    if length is not None and length != nbytes:
        why = f"length says {length:,} bytes, the dims need {nbytes:,}"
        raise InvalidModel(
            "E314",
            "external data has the wrong length",
            at=at,
            why=why,
            fix="copy the weight file again, or export the model again",
        )
    size = _confined_size(folder, entries["location"], at)
    if (offset or 0) + nbytes > size:
        why = f"{nbytes:,} bytes from {offset or 0:,} in a file of {size:,}"
        raise InvalidModel(
            "E314",
            "external data ends before its tensor does",
            at=at,
            why=why,
            fix="copy the weight file again, whole",
        )


def _number(text: str, key: str, at: str) -> int | None:
    """Return the number that ``text`` spells, None if it is empty; raises InvalidModel E314."""
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) >= 19:
        raise _bad_description(f"{key} is {text[:40]!r}", at)
    return int(text)


def _bad_description(why: str, at: str) -> InvalidModel:
    """Return E314 for external data whose keys or values ONNX does not allow."""
    return InvalidModel(
        "E314",
        "external data has a description that ONNX does not allow",
        at=at,
        why=why,
        fix="export the model again",
    )


def _confined_size(folder: Path, location: str, at: str) -> int:
    """Return the size of a regular file below ``folder``; E313 if its path contains a link."""
    parts = PurePosixPath(location).parts
    escapes = not parts or PurePosixPath(location).is_absolute() or ".." in parts
    if escapes or "\\" in location or "\0" in location or ":" in location:
        raise _outside_of_folder(location, at, "the path leaves the folder of the model")
    path = folder
    for part in parts:
        path = path / part
        try:
            status = os.lstat(path)
        except OSError as error:
            why = f"{location!r}: {error.strerror}"
            raise InvalidModel(
                "E314",
                "a file of external data is missing",
                at=at,
                why=why,
                fix="copy the weight file into the folder of the model",
            ) from error
        if stat.S_ISLNK(status.st_mode):
            raise _outside_of_folder(location, at, f"{part!r} is a symbolic link")
    if not stat.S_ISREG(status.st_mode):
        raise _outside_of_folder(location, at, "it is not a regular file")
    if status.st_nlink > 1:
        raise _outside_of_folder(location, at, "the file has another name elsewhere (a hard link)")
    return status.st_size


def _outside_of_folder(location: str, at: str, why: str) -> SmeltError:
    """Return E313 for a location outside of the model's folder."""
    return InvalidModel(
        "E313",
        f"external data at {location[:80]!r} is refused",
        at=at,
        why=why,
        fix="keep weights as plain files in the folder of the model",
    )
