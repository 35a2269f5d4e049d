"""Find tensors that are equal bit by bit, and read only those that may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

import onnx_ir as ir

from smelt.ir.tensors.chunks import tensor_digest


class EqualTensors:
    """Gives equal tensors equal keys.

    The elements of a tensor are read only if another one has its type and shape.
    """

    def __init__(self, tensors: Iterable[ir.TensorProtocol]) -> None:
        """Prepare for ``tensors``: all that will be compared."""
        self._alike = Counter(map(_kind, tensors))

    def key(self, tensor: ir.TensorProtocol) -> Hashable:
        """Return the key of ``tensor``: element type, shape, and a digest of its elements.

        -0 differs from 0, and NaN equals itself.
        """
        kind = _kind(tensor)
        return (kind, tensor_digest(tensor)) if self._alike[kind] > 1 else kind


def _kind(tensor: ir.TensorProtocol) -> Hashable:
    """Return the element type and the shape of ``tensor``."""
    return tensor.dtype, tuple(tensor.shape.numpy())
