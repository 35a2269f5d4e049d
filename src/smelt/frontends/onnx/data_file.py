"""A file of external data: the weights of one model, or those of several, equal ones once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import BinaryIO

import onnx_ir as ir

from smelt.errors import InternalError
from smelt.ir.tensors.chunks import tensor_chunks
from smelt.ir.tensors.equal_tensors import EqualTensors

ALIGNMENT = 64
"""Offsets of weights are multiples of this many bytes."""


class DataFile:
    """The weights in one file of external data, for one model or several, each with its offset.

    With ``equal``, which knows all weights of the models, equal weights share an offset.
    """

    def __init__(self, location: str, equal: EqualTensors | None = None) -> None:
        """Begin an empty file, which models refer to by the name ``location``."""
        self.location = location
        self.placed: list[tuple[int, ir.TensorProtocol]] = []  # each offset and its tensor
        self._equal = equal
        self._offsets: dict[Hashable, int] = {}  # the offset of each content

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self.placed[-1][0] + self.placed[-1][1].nbytes if self.placed else 0

    def put(self, tensor: ir.TensorProtocol) -> int:
        """Return the offset of ``tensor``: that of an equal tensor, or the next aligned offset.

        Without ``equal``, each offset is its own key, so that no tensor counts as equal.
        """
        offset = -(-self.size // ALIGNMENT) * ALIGNMENT  # rounded up
        key: Hashable = offset if self._equal is None else self._equal.key(tensor)
        if key not in self._offsets:
            self._offsets[key] = offset
            self.placed.append((offset, tensor))
        return self._offsets[key]

    def write(self, stream: BinaryIO) -> None:
        """Write the weights to ``stream``, with zeros between them for the alignment."""
        end = 0
        for offset, tensor in self.placed:
            stream.write(bytes(offset - end))
            write_tensor(tensor, stream)
            end = offset + tensor.nbytes


def write_tensor(tensor: ir.TensorProtocol, stream: BinaryIO) -> None:
    """Write a tensor in chunks; raises InternalError E902 if it yields other than ``nbytes``."""
    written = 0
    for chunk in tensor_chunks(tensor):
        stream.write(chunk)
        written += len(chunk)
    if written != tensor.nbytes:
        what = f"tensor {tensor.name!r} has {written:,} bytes instead of {tensor.nbytes:,}"
        raise InternalError("E902", what)
