"""Readers of compressed weights, the constexpr operators.

Affine weights stay integers, read by a DequantizeLinear. ONNX has no palettes and no sparse weights
of this form, so they become dense weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import Result, reads
from smelt.frontends.coreml.types import WORDS
from smelt.mlpackage.program import Constant, Element, TensorType
from smelt.mlpackage.weights import unpack

_AFFINE = (Element.INT8, Element.UINT8, Element.INT4, Element.UINT4)


def _constant(call: Call, name: str) -> Constant:
    """Return the parameter ``name``; raises E121 if it is missing or computed."""
    call.array(name)
    constant = call.constant(name)
    assert constant is not None
    return constant


def _kind(constant: Constant) -> TensorType:
    """Return the type of a constant tensor."""
    assert isinstance(constant.type, TensorType)
    return constant.type


def _made(array: np.ndarray, element: Element) -> Constant:
    """Return an array that a reader computed as a Constant."""
    return Constant(TensorType(element, array.shape), np.ascontiguousarray(array))


@reads("constexpr_affine_dequantize")
def _affine(call: Call) -> Result:
    """Return scale * (quantized_data - zero_point), with one scale or one by ``axis``."""
    data, zero = _constant(call, "quantized_data"), _constant(call, "zero_point")
    scale = _constant(call, "scale")
    rank = np.ndim(data.value)
    vectors = [each for each in (scale, zero) if np.ndim(each.value)]
    axis = call.axis("axis", rank) if vectors else 0
    if _kind(zero).element == _kind(data).element and np.shape(zero.value) == np.shape(scale.value):
        inputs = [call.scope.as_value(each) for each in (data, scale, zero)]
        return call.op("DequantizeLinear", *inputs, axis=axis if vectors else None)
    shape = [1] * rank
    shape[axis] = -1
    shift, factor = (
        np.reshape(each.value, shape) if np.ndim(each.value) else each.value
        for each in (zero, scale)
    )
    return _made(_dequantized(data, factor, shift), _kind(scale).element)


def _dequantized(data: Constant, scale: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
    """Return ``scale * (data - offset)`` in the type of ``scale``, computed in float32."""
    numbers = np.asarray(data.value).astype(np.float32)
    if offset is not None:
        numbers = numbers - np.asarray(offset).astype(np.float32)
    dtype = np.asarray(scale).dtype
    return (numbers * np.asarray(scale).astype(np.float32)).astype(dtype)


@reads("constexpr_blockwise_shift_scale")
def _blockwise(call: Call) -> Result:
    """Return ``scale * (data - offset)``, where each scale covers a block of the data.

    It becomes a DequantizeLinear if ONNX has the form: blocks along at most one axis.
    """
    data, scale, offset = _constant(call, "data"), _constant(call, "scale"), None
    if call.has("offset"):
        offset = _constant(call, "offset")
    sizes, counts = np.shape(data.value), np.shape(scale.value)
    blocks = _blocks(call, sizes, counts)
    cut = [axis for axis, block in enumerate(blocks) if block not in (1, sizes[axis])]
    per_axis = [axis for axis in range(len(sizes)) if counts[axis] > 1]
    same_type = offset is None or _kind(offset).element == _kind(data).element
    if _kind(data).element in _AFFINE and same_type and len(cut) <= 1:
        if not cut and len(per_axis) <= 1:
            shape = [-1] if per_axis else []
            parts = [
                _made(np.reshape(each.value, shape), _kind(each).element)
                for each in (scale, offset)
                if each
            ]
            axis, block = (per_axis or [0])[0], None
        elif cut:
            axis, block = cut[0], blocks[cut[0]]
            grid = [counts[a] if a == axis else sizes[a] for a in range(len(sizes))]
            parts = [
                _made(_spread(np.asarray(each.value), grid), _kind(each).element)
                for each in (scale, offset)
                if each
            ]
        else:
            return _dense_blocks(data, scale, offset)
        inputs = [call.scope.as_value(each) for each in (data, *parts)]
        return call.op("DequantizeLinear", *inputs, axis=axis, block_size=block)
    return _dense_blocks(data, scale, offset)


def _blocks(call: Call, sizes: Sequence[int], counts: Sequence[int]) -> list[int]:
    """Return ``size / count`` along each axis: the sizes of blocks of the data.

    ``sizes`` is the shape of the data, ``counts`` that of the scales. Raises E121 if they do not
    divide.
    """
    if len(sizes) != len(counts) or any(
        count < 1 or size % count for size, count in zip(sizes, counts, strict=True)
    ):
        raise call.refused(f"scales of shape {list(counts)} do not fit data of {list(sizes)}")
    return [size // count for size, count in zip(sizes, counts, strict=True)]


def _spread(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Return ``array`` with each element repeated to a block, so that the result has ``shape``."""
    for axis, size in enumerate(shape):
        if array.shape[axis] != size:
            array = np.repeat(array, size // array.shape[axis], axis)
    return array


def _dense_blocks(data: Constant, scale: Constant, offset: Constant | None) -> Constant:
    """Return data that is quantized in blocks as a dense float constant."""
    sizes = np.shape(data.value)
    factor = _spread(np.asarray(scale.value), sizes)
    shift = None if offset is None else _spread(np.asarray(offset.value), sizes)
    return _made(_dequantized(data, factor, shift), _kind(scale).element)


@reads("constexpr_cast")
def _cast(call: Call) -> ir.Value:
    """Return a weight in another element type."""
    name = call.word("output_dtype")
    if name not in WORDS:
        raise call.refused(f"there is no element type {name!r}")
    return call.op("Cast", call.value("source_val"), to=int(WORDS[name]))


@reads("constexpr_lut_to_dense")
def _palette(call: Call) -> Constant:
    """Return the dense weight of a palette: the entries of ``lut`` at ``indices``.

    In iOS 16, the indices have as many bits as the palette needs and are packed in bytes; ``shape``
    is the shape of the weight. In iOS 18, ``lut`` is (blocks along each axis, entries, vector).
    """
    lut = _constant(call, "lut")
    table = np.asarray(lut.value)
    if call.has("shape"):
        shape = call.integers("shape")
        bits = int(table.size - 1).bit_length()
        indices = _packed(call, "indices", prod(shape), bits)
        return _made(_entries(call, table.reshape(-1), indices).reshape(shape), _kind(lut).element)
    indices = call.array("indices")
    return _made(_looked_up(call, table, indices), _kind(lut).element)


_BITS = {
    1: Element.UINT1,
    2: Element.UINT2,
    3: Element.UINT3,
    4: Element.UINT4,
    6: Element.UINT6,
}


def _packed(call: Call, name: str, count: int, bits: int) -> np.ndarray:
    """Return ``count`` numbers of ``bits`` bits that are packed in the bytes of parameter
    ``name``."""
    data = call.array(name).reshape(-1).view(np.uint8)
    if bits not in (*_BITS, 8):
        raise call.refused("its palette has not 2, 4, 8, 16, 64 or 256 entries")
    if data.size < -(-count * bits // 8):
        raise call.refused(f"{name} has {data.size} bytes for {count} numbers of {bits} bits")
    return data[:count] if bits == 8 else unpack(data.tobytes(), _BITS[bits], count)


def _entries(call: Call, table: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return ``table[indices]``; raises E121 for an index that the palette lacks."""
    if indices.size and int(indices.max()) >= len(table):
        raise call.refused(f"the index {indices.max()} is beyond a palette of {len(table)}")
    entries: np.ndarray = table[indices]
    return entries


def _looked_up(call: Call, table: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return the entries of the palettes at ``indices``; each block of indices has its own palette.

    ``table`` is (blocks along each axis, entries, vector). An entry that is a vector of several
    elements lies along ``vector_axis`` of the result.
    """
    rank, vector = indices.ndim, table.shape[-1]
    if table.ndim != rank + 2:
        raise call.refused(f"a palette of rank {table.ndim} does not fit indices of rank {rank}")
    blocks = _blocks(call, indices.shape, table.shape[:rank])
    places = np.meshgrid(
        *(np.arange(s) // b for s, b in zip(indices.shape, blocks, strict=True)), indexing="ij"
    )
    if indices.size and int(indices.max()) >= table.shape[-2]:
        raise call.refused(f"the index {indices.max()} is beyond a palette of {table.shape[-2]}")
    vectors = table[(*places, indices)]
    if vector == 1:
        entries: np.ndarray = vectors[..., 0]
        return entries
    axis = call.axis("vector_axis", rank)
    moved = np.moveaxis(vectors, -1, axis + 1)
    shape = list(indices.shape)
    shape[axis] *= vector
    whole: np.ndarray = moved.reshape(shape)
    return whole


def _dense(call: Call, mask: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return an array with ``numbers``, in order, where ``mask`` is not 0, and 0 elsewhere."""
    chosen = mask.astype(np.bool_)
    if int(chosen.sum()) != numbers.size:
        raise call.refused(f"its mask has {int(chosen.sum())} elements, its data {numbers.size}")
    result = np.zeros(mask.shape, numbers.dtype)
    result[chosen] = numbers.reshape(-1)
    return result


@reads("constexpr_sparse_to_dense")
def _sparse(call: Call) -> Constant:
    """Return the dense weight of a sparse one: ``nonzero_data`` where the mask is 1, else 0.

    In iOS 16, the bits of the mask are packed in bytes, and ``shape`` is the shape of the weight.
    """
    data = _constant(call, "nonzero_data")
    if call.has("shape"):
        shape = call.integers("shape")
        mask = _packed(call, "mask", prod(shape), 1).reshape(shape)
    else:
        mask = call.array("mask")
    return _made(_dense(call, mask, np.asarray(data.value)), _kind(data).element)


@reads("constexpr_sparse_blockwise_shift_scale")
def _sparse_blockwise(call: Call) -> list[Constant]:
    """Return the mask, and ``scale * (data - offset)`` for the elements where the mask is 1.

    Both results are the inputs of a ``constexpr_sparse_to_dense``.
    """
    mask, data, scale = (_constant(call, name) for name in ("data_mask", "nonzero_data", "scale"))
    places = np.asarray(mask.value)
    _blocks(call, places.shape, np.shape(scale.value))
    _dense(call, places, np.asarray(data.value))
    chosen = places.astype(np.bool_)
    factor = _spread(np.asarray(scale.value), places.shape)[chosen]
    shift = None
    if call.has("offset"):
        shift = _spread(call.array("offset"), places.shape)[chosen]
    numbers = _dequantized(data, factor, shift)
    return [mask, _made(numbers, _kind(scale).element)]


@reads("constexpr_lut_to_sparse")
def _sparse_palette(call: Call) -> list[Constant]:
    """Return the mask, and the palette entries for the elements where the mask is 1.

    Both results are the inputs of a ``constexpr_sparse_to_dense``. If entries are vectors, the mask
    is repeated along ``vector_axis``.
    """
    mask, lut = _constant(call, "indices_mask"), _constant(call, "lut")
    places, table = np.asarray(mask.value), np.asarray(lut.value)
    indices = _dense(call, places, call.array("indices_nonzero_data"))
    vector = table.shape[-1]
    grown = (
        places if vector == 1 else np.repeat(places, vector, call.axis("vector_axis", places.ndim))
    )
    numbers = _looked_up(call, table, indices)[grown.astype(np.bool_)]
    return [_made(grown, _kind(mask).element), _made(numbers, _kind(lut).element)]
