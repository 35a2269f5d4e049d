"""Constants of ONNX text, whose parser takes the 16-bit floats as bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np

_HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def literal(dtype: str, *numbers: float) -> str:
    """``{1.0,2.0}``, or its bits."""
    half = _HALVES.get(dtype)
    if half is None:
        integer = dtype.startswith(("int", "uint"))
        return "{" + ",".join(str(int(n)) if integer else repr(float(n)) for n in numbers) + "}"
    bits = np.asarray(numbers).astype(half).view(np.uint16)
    return "{" + ",".join(str(item) for item in bits.tolist()) + "}"
