"""Weights side by side as one constant, put together each time that it is read.

Saving reads a weight once. Until then, a copy of it would only take memory, and the time to get it
from the system, which for the weights of a large model is longer than all passes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir


class LazyConcat(ir.LazyTensor):
    """Matrices of equal height, one beside the other."""

    def __init__(self, parts: Sequence[ir.TensorProtocol]) -> None:
        self.parts = tuple(parts)
        height = parts[0].shape.numpy()[0]
        width = sum(part.shape.numpy()[1] for part in parts)
        super().__init__(self._concatenated, parts[0].dtype, ir.Shape((height, width)))

    def sample(self, count: int) -> bytes:
        """About ``count`` elements of each part, the same for equal parts."""
        arrays = (part.numpy() for part in self.parts)
        return b"".join(array.flat[:: max(1, array.size // count)].tobytes() for array in arrays)

    def _concatenated(self) -> ir.Tensor:
        arrays = [part.numpy() for part in self.parts]
        return ir.Tensor(np.concatenate(arrays, axis=1), dtype=self.dtype)
