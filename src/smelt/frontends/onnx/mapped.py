"""Weights in files, external or inside of a model, are mapped once when the model is loaded.

A map keeps its file open. So a model may be written over its own files and still read the old ones,
while a path would lead to the new file with the offsets of the old one. A weight is read when it is
needed, and uses no memory of its own.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel, ResourceLimit
from smelt.frontends.onnx.embedded import Data, Embedded
from smelt.ir import scope
from smelt.ir.tensors.mapped_pages import ReadOnlyMap

HAD_EXTERNAL_DATA = "smelt.weights_beside"
"""In the ``meta`` of a main graph: its weights came as external data."""

WEIGHT_FILES = "smelt.weight_files"
"""In the ``meta`` of a main graph: the paths of the files with its external data."""


class MappedFile(ReadOnlyMap):
    """The bytes of a file; ``path`` is where it was when it was mapped."""

    path: Path


def place_of(array: np.ndarray) -> tuple[Path, int] | None:
    """Return the mapped file whose bytes ``array`` shows, and the offset of its first element.

    None for an array in memory, or one that is not row-major.
    """
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    mapped = base.obj if isinstance(base, memoryview) else base
    if not isinstance(mapped, MappedFile) or not array.flags.c_contiguous:
        return None
    start = np.frombuffer(mapped, np.uint8, 1).ctypes.data
    return mapped.path, array.ctypes.data - start


def map_weights(model: ir.Model, folder: Path | None, embedded: Embedded) -> None:
    """Replace every external tensor by a tensor over its mapped file below ``folder``.

    References to the weights ``embedded`` in the model are replaced by these. Raises ResourceLimit
    E512 if a file cannot be mapped, and InvalidModel E314 if it is shorter than its tensors.
    """
    files = _Files(folder, embedded)
    for graph in scope.graphs(model):
        for value in graph.initializers.values():
            if isinstance(value.const_value, ir.ExternalTensor):
                value.const_value = files.mapped(value.const_value)
        for node in graph:
            for attribute in list(node.attributes.values()):
                if attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref():
                    tensor = attribute.as_tensor()
                    if isinstance(tensor, ir.ExternalTensor):
                        replaced = ir.AttrTensor(attribute.name, files.mapped(tensor))
                        node.attributes[attribute.name] = replaced
    if len(files.maps) > 1:
        model.graph.meta[HAD_EXTERNAL_DATA] = True
        model.graph.meta[WEIGHT_FILES] = files.paths


class _Files:
    """Maps each file once, for all tensors in it."""

    def __init__(self, folder: Path | None, embedded: Embedded) -> None:
        """Begin with the bytes of the model itself, which references name by its mark.

        Files in ``folder`` are mapped when a tensor needs them.
        """
        self.folder = folder
        self.maps: dict[str, Data] = {embedded.mark: embedded.data}
        self.paths: list[Path] = []

    def mapped(self, tensor: ir.ExternalTensor) -> ir.TensorProtocol:
        """Return the tensor over its mapped file."""
        location, start = os.fspath(tensor.location), tensor.offset or 0
        data = self.maps.get(location)
        if data is None:
            if self.folder is None:
                return tensor
            self.paths.append(self.folder / location)
            data = self.maps[location] = map_file(self.folder / location)
        if start + tensor.nbytes > len(data):
            why = f"{tensor.nbytes:,} bytes from {start:,} in a file of {len(data):,}"
            raise InvalidModel(
                "E314",
                "external data ends before its tensor does",
                why=why,
                fix="copy the weight file again, whole",
            )
        return _tensor_over(data, start, tensor)


def map_file(path: Path) -> Data:
    """Return the bytes of a file, read on access; ResourceLimit E512 if it cannot be mapped."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return b""
            mapped = MappedFile(file.fileno(), 0, access=mmap.ACCESS_READ)
            mapped.path = path
            return mapped
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ResourceLimit(
            "E512",
            f"cannot map {path.name!r}",
            why=why,
            fix="free memory, or run on a larger machine",
        ) from error


def _tensor_over(data: Data, start: int, tensor: ir.ExternalTensor) -> ir.TensorProtocol:
    """Return a tensor like ``tensor`` over ``data`` from ``start`` on."""
    dtype, shape = tensor.dtype, ir.Shape(tensor.shape.numpy())
    if dtype.bitwidth < 8:
        packed = np.frombuffer(data, np.uint8, tensor.nbytes, start)
        view: ir.TensorProtocol = ir.PackedTensor(packed, dtype, shape=shape, name=tensor.name)
    else:
        kind = np.dtype(dtype.numpy()).newbyteorder("<")
        array = np.frombuffer(data, kind, tensor.size, start).reshape(shape.numpy())
        view = ir.Tensor(array, dtype=dtype, shape=shape, name=tensor.name)
    view.doc_string = tensor.doc_string
    view.metadata_props.update(tensor.metadata_props)
    return view
