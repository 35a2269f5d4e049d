"""``python -m random_graphs.structured START STOP``: structured models, held against ONNX Runtime.

Transformer blocks, convolution blocks, quantized graphs and arithmetic on shapes, in turn. The
comparison and the options are those of ``loop_trials``.
"""

from __future__ import annotations

import sys

import numpy as np
import onnx_ir as ir
from random_graphs.loop_trials import Arrays, Trial, run_trials
from random_graphs.structured_builder import Builder
from random_graphs.structured_images import images
from random_graphs.structured_quantized import quantized
from random_graphs.structured_shapes import sizes
from random_graphs.structured_transformer import transformer

KINDS = (transformer, images, transformer, quantized, sizes)


def structured(seed: int) -> Builder:
    """The model of ``seed``."""
    b = Builder(seed)
    KINDS[seed % len(KINDS)](b)
    return b


class StructuredTrial(Trial):
    """A structured model; two sizes of its own."""

    def draw(self) -> None:
        b = structured(self.seed)
        self.proto = b.model()
        self.half = b.type == ir.DataType.FLOAT16
        self.kind = KINDS[self.seed % len(KINDS)]
        self.sizes = tuple({name: pair[i] for name, pair in b.sizes.items()} for i in (0, 1))

    def model(self) -> ir.Model:
        return ir.from_proto(self.proto)

    def drawn(self, value: ir.Value, shape: list[int], rng: np.random.Generator) -> np.ndarray:
        if value.dtype in (ir.DataType.BOOL, ir.DataType.INT64):
            flags = rng.random(shape) < 0.7
            if shape and rng.random() < 0.9:
                flags[..., 0] = True
            return np.asarray(flags, value.dtype.numpy())
        return rng.normal(size=shape).astype(value.dtype.numpy())

    def differences(self, which: int, actual: Arrays) -> list[str]:
        found = []
        for index, (x, y) in enumerate(zip(self.expected[which], actual, strict=True)):
            where = f"output {index} at {self.sizes[which]}"
            if x.shape != y.shape or x.dtype != y.dtype:
                found.append(f"{where}: {y.dtype}{y.shape} for {x.dtype}{x.shape}")
            elif (bad := self._far(x, y)).any():
                found.append(
                    f"{where}: {bad.sum()} of {bad.size}, {x[bad][:3]} became {y[bad][:3]}"
                )
        return found

    def _far(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Where ``y`` is further from ``x`` than rounding of floats goes."""
        if x.dtype.kind != "f":
            return np.asarray(x != y)
        close = 0.03 if self.half else 2e-4
        finite = np.abs(x[np.isfinite(x)])
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        return ~np.isclose(x, y, close, close * scale, equal_nan=True)


if __name__ == "__main__":
    sys.exit(run_trials(__doc__, StructuredTrial))
