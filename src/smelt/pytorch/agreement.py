"""Whether a compiled graph computes what PyTorch computes, on the arguments of its first call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from smelt.check.compare import Tolerance, compare
from smelt.errors import Unsupported
from smelt.ir.floats import is_float
from smelt.networks.tensors import array_of

ALLOWED = {"float64": 1e-8, "float32": 1e-3, "float16": 3e-2}
"""By element type, the largest error relative to the largest finite magnitude of a result."""

ALLOWED_OF_NARROW = 1e-1
"""The same for bfloat16 and floats of 8 bits."""


def check_agreement(expected: Sequence[Any], actual: Sequence[Any]) -> None:
    """Raise Unsupported E118 if a result differs by more than rounding explains.

    ``expected`` has the results of PyTorch. Integers, booleans, types, shapes and the places of NaN
    and inf must be equal. PyTorch's exporter writes some operators as others without a warning, for
    example a BatchNorm in training mode.
    """
    for number, (left, right) in enumerate(zip(expected, actual, strict=True)):
        if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
            problem = _difference(number, array_of(left), array_of(right))
        else:
            problem = "" if left == right else f"result {number} is {right!r}, not {left!r}"
        if problem:
            raise Unsupported(
                "E118",
                "the compiled graph computes other results than PyTorch",
                why=problem,
                fix="let PyTorch run this part, behind torch._dynamo.graph_break(), "
                'or accept the results with options={"verify": False}',
            )


def _difference(number: int, expected: np.ndarray, actual: np.ndarray) -> str:
    """Return the difference of the result ``number``, as text; "" if rounding explains it."""
    tolerance = Tolerance()
    if is_float(expected.dtype) or expected.dtype.kind == "c":
        wide = np.abs(expected.astype(complex if expected.dtype.kind == "c" else float))
        largest = float(np.max(wide, initial=0.0, where=np.isfinite(wide)))
        name = "float64" if expected.dtype == np.complex128 else str(expected.dtype)
        name = "float32" if expected.dtype == np.complex64 else name
        tolerance = Tolerance(atol=ALLOWED.get(name, ALLOWED_OF_NARROW) * largest)
    (comparison,) = compare([expected], [actual], tolerance, names=[str(number)])
    return "" if comparison.ok else str(comparison)
