"""Tensors of PyTorch as NumPy arrays that share their memory, and back."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

STORED: dict[torch.dtype, tuple[torch.dtype, Any]] = {
    torch.bfloat16: (torch.int16, ml_dtypes.bfloat16),
    torch.float8_e4m3fn: (torch.uint8, ml_dtypes.float8_e4m3fn),
    torch.float8_e4m3fnuz: (torch.uint8, ml_dtypes.float8_e4m3fnuz),
    torch.float8_e5m2: (torch.uint8, ml_dtypes.float8_e5m2),
    torch.float8_e5m2fnuz: (torch.uint8, ml_dtypes.float8_e5m2fnuz),
}
"""Types that NumPy lacks: the integer type of the same size, and the type of ``ml_dtypes``."""

READ = {np.dtype(dtype): kind for kind, (_, dtype) in STORED.items()}


def array_of(tensor: torch.Tensor) -> np.ndarray:
    """Return the array of a dense tensor on the CPU; it shares the tensor's memory."""
    dense = tensor.detach()
    if dense.is_conj() or dense.is_neg():
        dense = dense.resolve_conj().resolve_neg()
    stored = STORED.get(dense.dtype)
    if stored is None:
        array: np.ndarray = dense.numpy()
        return array
    return np.asarray(dense.view(stored[0]).numpy()).view(stored[1])


def tensor_of(array: np.ndarray) -> torch.Tensor:
    """Return the tensor of an array, which shares its memory unless that is read-only."""
    array = array if array.flags.writeable else array.copy()
    kind = READ.get(array.dtype)
    if kind is None:
        return torch.from_numpy(array)
    stored = STORED[kind][0]
    return torch.from_numpy(array.view(np.dtype(str(stored).removeprefix("torch.")))).view(kind)


def torch_type(dtype: Any) -> torch.dtype:
    """Return the element type of PyTorch that ``dtype``, of PyTorch or NumPy, names."""
    if isinstance(dtype, torch.dtype):
        return dtype
    return tensor_of(np.empty(0, np.dtype(dtype))).dtype


def numpy_type(dtype: torch.dtype) -> np.dtype:
    """Return the element type of NumPy or ``ml_dtypes`` for one of PyTorch."""
    return array_of(torch.empty(0, dtype=dtype)).dtype
