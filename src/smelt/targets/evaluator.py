"""What computes nodes of constants while a model is optimized."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.runtime.fold import evaluator


def evaluator_of(model: ir.Model) -> Any:
    """Return what computes nodes of constants: NumPy, and the kernels of ``host``."""

    def by_kernels(*call: Any) -> list[np.ndarray] | None:
        from smelt.targets.host.fold_node import compute_node  # imported on first use

        return compute_node(*call)

    return evaluator(model, by_kernels)
