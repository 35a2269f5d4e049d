"""A constant that concatenates weights each time it is read.

Saving reads a weight once. An earlier copy would only take memory, and for the weights of a large
model allocating it takes longer than all passes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir


class LazyConcat(ir.LazyTensor):
    """Matrices of equal height, concatenated along axis 1."""

    def __init__(self, parts: Sequence[ir.TensorProtocol]) -> None:
        """Stand for the matrices ``parts``, of equal height, side by side."""
        self.parts = tuple(parts)
        height = parts[0].shape.numpy()[0]
        width = sum(part.shape.numpy()[1] for part in parts)
        super().__init__(self._concatenated, parts[0].dtype, ir.Shape((height, width)))

    def sample(self, count: int) -> bytes:
        """Return the bytes of about ``count`` elements of each part; equal parts give equal
        samples."""
        arrays = (part.numpy() for part in self.parts)
        return b"".join(array.flat[:: max(1, array.size // count)].tobytes() for array in arrays)

    def _concatenated(self) -> ir.Tensor:
        """Return the parts as one tensor."""
        arrays = [part.numpy() for part in self.parts]
        return ir.Tensor(np.concatenate(arrays, axis=1), dtype=self.dtype)
