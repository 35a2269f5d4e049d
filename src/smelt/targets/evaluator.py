"""The evaluator of nodes with constant operands, for constant folding."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.runtime.fold import evaluator


def evaluator_of(model: ir.Model) -> Any:
    """Return a function that computes nodes of ``model`` on constants.

    It uses the reference kernels of onnx and the NumPy kernels of the target ``host``.
    """

    def by_kernels(*call: Any) -> list[np.ndarray] | None:
        """Return the results of a node by the kernels of ``host``; None to not fold it."""
        from smelt.targets.host.fold_node import compute_node  # imported on first use

        return compute_node(*call)

    return evaluator(model, by_kernels)
