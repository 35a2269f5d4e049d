"""Cast weights from a checkpoint's floating type to the model's, each when it is read."""

from __future__ import annotations

import operator

import ml_dtypes
import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.frontends.weights.npz import RAW


def is_castable(tensor: ir.TensorProtocol, dtype: ir.DataType) -> bool:
    """True for floats that can be cast to the float type ``dtype``; not for integers and raw bytes.

    ``numpy.savez`` leaves types such as bfloat16 as raw bytes.
    """
    return (
        tensor.dtype != dtype
        and RAW not in tensor.meta
        and tensor.dtype.is_floating_point()
        and dtype.is_floating_point()
    )


def cast(tensor: ir.TensorProtocol, dtype: ir.DataType, name: str | None) -> ir.TensorProtocol:
    """Return a lazy tensor called ``name``: ``tensor`` rounded to ``dtype`` whenever it is read.

    Raises InvalidModel E340 if a finite number overflows in ``dtype``.
    """

    def read() -> ir.Tensor:
        """Return the tensor rounded to ``dtype``."""
        with np.errstate(over="ignore", invalid="ignore"):
            return ir.Tensor(tensor.numpy().astype(dtype.numpy()), dtype=dtype)

    limits = (ml_dtypes.finfo(kind.numpy()).max for kind in (dtype, tensor.dtype))
    if operator.lt(*map(float, limits)) and _overflows(tensor.numpy(), read().numpy()):
        raise InvalidModel(
            "E340",
            f"numbers of the weight {name!r} are too large for {dtype.short_name()}",
            why=f"the checkpoint has them in {tensor.dtype.short_name()}",
            fix="trace with the types of the checkpoint",
        )
    return ir.LazyTensor(read, dtype, ir.Shape(tensor.shape.numpy()), name=name)


def _overflows(original: np.ndarray, rounded: np.ndarray) -> bool:
    """True if a finite number became infinite, as 1e38 does in float16."""
    return not np.isfinite(rounded)[np.isfinite(original)].all()
