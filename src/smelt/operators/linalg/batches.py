"""Type checks and loops that operators on stacks of matrices share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.same_shape import Dim

REAL = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


def check_matrices(a: ir.Value | None, name: str, rank: int = 2) -> ir.Shape | None:
    """Return the shape of ``a``, a stack of arrays of ``rank``; raises ValueError for other
    values."""
    if a is None:
        raise ValueError(f"{name} misses an operand")
    if a.dtype is not None and a.dtype not in REAL:
        raise ValueError(f"{name} takes float32 or float64, not {a.dtype.name.lower()}")
    if a.shape is not None and len(a.shape) < rank:
        raise ValueError(f"{name} takes arrays of rank {rank} or more, not {len(a.shape)}")
    return a.shape


def check_square(a: ir.Value, name: str) -> None:
    """Raise ValueError unless ``a`` may hold square matrices of float32 or float64."""
    if a.dtype is not None and a.dtype not in REAL:
        raise ValueError(f"{name} takes float32 or float64, not {a.dtype.name.lower()}")
    if a.shape is None:
        return
    if len(a.shape) < 2:
        raise ValueError(f"{name} takes matrices, not rank {len(a.shape)}")
    rows, columns = a.shape[-2], a.shape[-1]
    if isinstance(rows, int) and isinstance(columns, int) and rows != columns:
        raise ValueError(f"{name} takes square matrices, not {rows} by {columns}")


def smaller_dim(x: Dim, y: Dim) -> Dim:
    """Return the smaller of two dims: a number, an expression of symbols, or an unknown dim."""
    if isinstance(x, int) and isinstance(y, int):
        return min(x, y)
    if any(not isinstance(dim, int) and dim.value is None for dim in (x, y)):
        return ir.SymbolicDim(None)
    return x if x == y else ir.SymbolicDim(f"min({x}, {y})")


def map_matrices(
    function: Callable[..., Sequence[np.ndarray]],
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[np.dtype | type],
    arrays: Sequence[np.ndarray],
    ranks: Sequence[int],
) -> tuple[np.ndarray, ...]:
    """Return the results of ``function`` for each matrix of the stacks ``arrays``, stacked.

    ``ranks`` are the numbers of last dims that belong to one array of each stack. The results for
    one matrix have ``shapes`` and ``dtypes``. ``function`` is not called if all results are empty.
    """
    batch = arrays[0].shape[: arrays[0].ndim - ranks[0]]
    results = [
        np.zeros((*batch, *shape), dtype) for shape, dtype in zip(shapes, dtypes, strict=True)
    ]
    if any(result.size for result in results):
        with np.errstate(all="ignore"):
            for index in np.ndindex(*batch):
                results_of_matrix = function(*(array[index] for array in arrays))
                for result, part in zip(results, results_of_matrix, strict=True):
                    result[index] = part
    return tuple(results)
