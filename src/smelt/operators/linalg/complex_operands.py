"""Type checks of operators whose matrices are real and imaginary parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.linalg.batches import check_matrices, check_square


def parts_of(
    inputs: Sequence[ir.Value | None], name: str, *, square: bool = False
) -> tuple[ir.Shape | None, ir.DataType | None]:
    """Return shape and dtype of a complex operand, known from either part.

    Raises ValueError if the parts differ, or do not hold matrices (square ones with ``square``).
    """
    re, im = inputs
    if re is None or im is None:
        raise ValueError(f"{name} takes two operands")
    for part in (re, im):
        check_matrices(part, name)
        if square:
            check_square(part, name)
    if re.dtype is not None and im.dtype is not None and re.dtype != im.dtype:
        raise ValueError(f"the parts of {name} have the types {re.dtype} and {im.dtype}")
    if re.shape is not None and im.shape is not None and len(re.shape) != len(im.shape):
        raise ValueError(f"the parts of {name} have the ranks {len(re.shape)} and {len(im.shape)}")
    shape = re.shape if re.shape is not None else im.shape
    return shape, re.dtype or im.dtype


def complex_of(re: np.ndarray, im: np.ndarray) -> np.ndarray:
    """Return the parts as one array of complex numbers."""
    return re + np.complex64(1j) * im
