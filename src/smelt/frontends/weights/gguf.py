"""Read GGUF files of llama.cpp: metadata, then descriptions of tensors, then their mapped bytes.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Numbers are little endian.
Dims are listed from the last axis to the first. Offsets count from the first multiple of the
alignment after the descriptions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.frontends.onnx.mapped import map_file
from smelt.frontends.weights.gguf_blocks import BLOCK_TYPES, Array, BlockType

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_DIMS = 4
STRING, LIST = 8, 9
"""The types of metadata that are neither numbers nor bools."""

NUMBERS: Mapping[int, np.dtype[Any]] = {
    code: np.dtype(name)
    for code, name in enumerate(("u1", "i1", "<u2", "<i2", "<u4", "<i4", "<f4", "?"))
} | {10: np.dtype("<u8"), 11: np.dtype("<i8"), 12: np.dtype("<f8")}
"""The types of numbers in metadata."""

DTYPES: Mapping[int, np.dtype[Any]] = {
    0: np.dtype("<f4"),
    1: np.dtype("<f2"),
    24: np.dtype("i1"),
    25: np.dtype("<i2"),
    26: np.dtype("<i4"),
    27: np.dtype("<i8"),
    28: np.dtype("<f8"),
    30: np.dtype(ml_dtypes.bfloat16),
}
"""The types of tensors whose elements stand one by one."""

BLOCKS = "smelt.gguf_blocks"
"""In the ``meta`` of a tensor: its ``Blocks``."""


@dataclass(frozen=True)
class Blocks:
    """The quantized elements of a tensor: its type, and uint8[..., blocks in a row, nbytes]."""

    type: BlockType
    data: Array


@dataclass(frozen=True)
class Gguf:
    """``metadata`` by key, without lists of texts, and tensors by name."""

    metadata: Mapping[str, Any]
    tensors: Mapping[str, ir.TensorProtocol]


class _Reader:
    """Reads values one after another; raises ValueError at the end of ``data``."""

    def __init__(self, data: Any) -> None:
        """Start at byte 0."""
        self.data, self.place = data, 0

    def skip(self, count: int) -> int:
        """Go on by ``count`` bytes; return the place before them."""
        begin = self.place
        if count > len(self.data) - begin:
            raise ValueError("it ends before the descriptions of its tensors do")
        self.place = begin + count
        return begin

    def numbers(self, dtype: np.dtype[Any], count: int) -> Array:
        """Return the next ``count`` numbers."""
        begin = self.skip(count * dtype.itemsize)
        return np.frombuffer(self.data, dtype, count, begin)

    def count(self, size: int = 8) -> int:
        """Return the next number, unsigned, of ``size`` bytes."""
        begin = self.skip(size)
        return int.from_bytes(self.data[begin : begin + size], "little")

    def text(self) -> str:
        """Return the next text."""
        size = self.count()
        begin = self.skip(size)
        return bytes(self.data[begin : begin + size]).decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        """Return the next value of metadata; None for a list of texts or of lists."""
        if kind == STRING:
            return self.text()
        if kind in NUMBERS:
            return self.numbers(NUMBERS[kind], 1)[0].item()
        if kind != LIST:
            raise ValueError(f"its metadata has the unknown type {kind}")
        of, count = self.count(4), self.count()
        if of in NUMBERS:
            return self.numbers(NUMBERS[of], count)
        for _ in range(count):
            self.value(of)
        return None


def open_gguf(path: Path) -> Gguf:
    """Return the metadata and tensors of one file; quantized tensors are float32 when they are
    read.

    Raises InvalidModel E341 if it breaks the format or has an unknown type, ResourceLimit E512 if
    it cannot be mapped.
    """
    data = map_file(path)
    try:
        return _read(data)
    except (ValueError, RecursionError) as error:
        raise InvalidModel(
            "E341",
            f"cannot read {path.name!r}",
            why=str(error),
            fix="copy or download the file again, or write it by llama.cpp with other types, such "
            "as llama-quantize model.gguf new.gguf Q4_K_M",
        ) from error


def _read(data: Any) -> Gguf:
    """Return the metadata and tensors of the file with the bytes ``data``.

    Raises ValueError, which says in a sentence how the file breaks the format.
    """
    reader = _Reader(data)
    begin = reader.skip(len(MAGIC))
    if bytes(data[begin : reader.place]) != MAGIC:
        raise ValueError("it does not begin with GGUF")
    version = reader.count(4)
    if version not in VERSIONS:
        is_swapped = version >> 24 in VERSIONS and version & 0xFFFFFF == 0
        raise ValueError("it is big endian" if is_swapped else f"its version is {version}")
    tensor_count, key_count = reader.count(), reader.count()
    metadata = {reader.text(): reader.value(reader.count(4)) for _ in range(key_count)}
    parts = metadata.get("split.count", 1)
    if not isinstance(parts, int) or parts > 1:
        raise ValueError(f"it is one of {parts} parts: llama-gguf-split --merge joins them")
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1:
        raise ValueError(f"its alignment is {alignment!r}")
    entries: dict[str, tuple[list[int], int, int]] = {}
    for _ in range(tensor_count):
        name, rank = reader.text(), reader.count(4)
        if rank > MOST_DIMS or name in entries:
            raise ValueError(f"{name!r} has {rank} dims, or is there twice")
        dims = [reader.count() for _ in range(rank)]
        entries[name] = dims[::-1], reader.count(4), reader.count()
    start = -(-reader.place // alignment) * alignment
    return Gguf(
        metadata,
        {
            name: _tensor(name, dims, kind, data, start + offset)
            for name, (dims, kind, offset) in entries.items()
        },
    )


def _tensor(name: str, dims: list[int], kind: int, data: Any, begin: int) -> ir.TensorProtocol:
    """Return the tensor at byte ``begin``; raises ValueError if its type is unknown or it does not
    fit."""
    count, block = math.prod(dims), BLOCK_TYPES.get(kind)
    if block is None and kind not in DTYPES:
        known = ", ".join(each.name for each in BLOCK_TYPES.values())
        raise ValueError(f"{name!r} has the type {kind}; F32, F16, BF16, {known} can be read")
    if block is not None and (not dims or dims[-1] % block.elements):
        raise ValueError(
            f"{name!r} is {dims}, but {block.name} needs rows of n * {block.elements} elements"
        )
    elements, nbytes = 1, 0
    if block is not None:
        elements, nbytes = block.elements, block.nbytes
    size = count // elements * (nbytes or DTYPES[kind].itemsize)
    if begin + size > len(data):
        raise ValueError(f"{name!r} lies beyond the end of the file")
    if block is None:
        array = np.frombuffer(data, DTYPES[kind], count, begin).reshape(dims)
        return ir.Tensor(array, dtype=ir.DataType.from_numpy(DTYPES[kind]), name=name)
    stored = np.frombuffer(data, np.uint8, size, begin)
    shape = (*dims[:-1], dims[-1] // block.elements, block.nbytes)
    return quantized(Blocks(block, stored.reshape(shape)), name)


def quantized(blocks: Blocks, name: str | None) -> ir.TensorProtocol:
    """Return a tensor of float32 that decodes ``blocks`` whenever it is read."""
    *rows, count, nbytes = blocks.data.shape
    dims = (*rows, count * blocks.type.elements)

    def read() -> ir.Tensor:
        """Return the numbers of all blocks."""
        return ir.Tensor(blocks.type.decode(blocks.data.reshape(-1, nbytes)).reshape(dims))

    tensor = ir.LazyTensor(read, ir.DataType.FLOAT, ir.Shape(dims), name=name)
    tensor.meta[BLOCKS] = blocks
    return tensor
