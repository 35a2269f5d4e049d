"""Replace weights by random ones, so that a reproducer does not disclose the weights of a model.

Each weight keeps its shape, element type, mean, spread and bounds. Small tensors and 64-bit
integers stay, because they are shapes, axes and indices that affect the graph.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.floats import is_float

SMALL = 16
"""The largest tensor, in elements, that is not replaced."""


def scrub(model: ir.Model, seed: int = 0) -> None:
    """Replace the weights of ``model`` in place; equal seeds give equal weights."""
    rng = np.random.default_rng(seed)
    for graph in scope.graphs(model):
        for value in graph.initializers.values():
            if value.const_value is not None:
                value.const_value = _scrubbed(value.const_value, rng)
        for node in graph:
            _scrub_attributes(node, rng)


def _scrub_attributes(node: ir.Node, rng: np.random.Generator) -> None:
    """Replace the tensors and lists of floats in the attributes of ``node``."""
    for name, attribute in list(node.attributes.items()):
        if attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref():
            node.attributes[name] = ir.AttrTensor(name, _scrubbed(attribute.as_tensor(), rng))
        elif attribute.type == ir.AttributeType.FLOATS and not attribute.is_ref():
            numbers = _random_like(np.asarray(attribute.as_floats(), np.float32), rng)
            node.attributes[name] = ir.AttrFloat32s(name, numbers.tolist())


def _scrubbed(tensor: ir.TensorProtocol, rng: np.random.Generator) -> ir.TensorProtocol:
    """Return random data in the type and shape of ``tensor``; small and 64-bit integer tensors
    stay.
    """
    if tensor.size <= SMALL or tensor.dtype in (ir.DataType.INT64, ir.DataType.BOOL):
        return tensor
    if tensor.dtype == ir.DataType.STRING:
        texts = [f"text {index}".encode() for index in range(tensor.size)]
        return ir.StringTensor(texts, shape=ir.Shape(tensor.shape.numpy()), name=tensor.name)
    return ir.Tensor(_random_like(tensor.numpy(), rng), dtype=tensor.dtype, name=tensor.name)


def _random_like(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return random numbers with the mean, spread and bounds of ``array``.

    Zeros, NaN and infinities stay in place.
    """
    if array.size <= SMALL:
        return array
    as_double = array.astype(np.float64)
    replaced = np.isfinite(as_double) & (as_double != 0)
    if not replaced.any():
        return array
    nonzero = as_double[replaced]
    drawn = np.clip(
        rng.normal(nonzero.mean(), nonzero.std(), array.shape), nonzero.min(), nonzero.max()
    )
    rounded = drawn if is_float(array.dtype) else np.rint(drawn)
    return np.where(replaced, rounded, as_double).astype(array.dtype)
