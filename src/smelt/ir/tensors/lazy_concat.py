"""A constant that concatenates weights each time it is read.

Saving reads a weight once. An earlier copy would only take memory, and for the weights of a large
model allocating it takes longer than all passes. Programs of one model that are compiled one after
the other share it by ``concatenated_once``.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import onnx_ir as ir

from smelt.ir.tensors.constants_on_disk import spilled
from smelt.ir.tensors.mapped_pages import forget_pages

_once: ContextVar[bool] = ContextVar("smelt.concatenated_once", default=False)


@contextmanager
def concatenated_once() -> Iterator[None]:
    """Let readers inside of the block share concatenated weights as long as one is in use."""
    token = _once.set(True)
    try:
        yield
    finally:
        _once.reset(token)


class LazyConcat(ir.LazyTensor):
    """Matrices of equal height, concatenated along axis 1."""

    def __init__(self, parts: Sequence[ir.TensorProtocol]) -> None:
        """Stand for the matrices ``parts``, of equal height, side by side."""
        self.parts = tuple(parts)
        height = parts[0].shape.numpy()[0]
        width = sum(part.shape.numpy()[1] for part in parts)
        self._made: weakref.ref[np.ndarray] | None = None
        super().__init__(self._concatenated, parts[0].dtype, ir.Shape((height, width)))

    def sample(self, count: int) -> bytes:
        """Return the bytes of about ``count`` elements of each part; equal parts give equal
        samples."""
        arrays = (part.numpy() for part in self.parts)
        return b"".join(array.flat[:: max(1, array.size // count)].tobytes() for array in arrays)

    def _concatenated(self) -> ir.Tensor:
        """Return the parts as one tensor."""
        root = None if self._made is None else self._made()
        if root is not None:
            return ir.Tensor(root.reshape(self.shape.numpy()), dtype=self.dtype)
        arrays = [part.numpy() for part in self.parts]
        array = np.concatenate(arrays, axis=1)
        if _once.get():
            array = spilled(array)
            for each in arrays:
                forget_pages(each)
            self._made = weakref.ref(array.base if isinstance(array.base, np.ndarray) else array)
        return ir.Tensor(array, dtype=self.dtype)
