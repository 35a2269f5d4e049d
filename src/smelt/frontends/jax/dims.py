"""Compare shapes that may have symbolic dims, and express them for Reshape."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.same_shape import same_dim


def sizes_agree(inferred: ir.Shape, expected: ir.Shape) -> bool:
    """True if the ranks are equal and no two static sizes differ; symbolic dims agree with all."""
    if len(inferred) != len(expected):
        return False
    pairs = zip(inferred.dims, expected.dims, strict=True)
    return all(
        inferred_dim == expected_dim
        for inferred_dim, expected_dim in pairs
        if isinstance(inferred_dim, int) and isinstance(expected_dim, int)
    )


def reshape_numbers(
    source: ir.Shape | None, target: list[int | ir.SymbolicDim]
) -> list[int] | None:
    """Return the constant shape of a Reshape to ``target``; None if it must be computed.

    -1 stands for at most one unknown dim, 0 for a dim equal to that of ``source``.
    """
    symbolic_axes = [axis for axis, dim in enumerate(target) if not isinstance(dim, int)]
    numbers = [dim if isinstance(dim, int) else -1 for dim in target]
    if len(symbolic_axes) > 1:
        kept_dims = [
            axis
            for axis in symbolic_axes
            if source is not None and axis < len(source) and same_dim(source[axis], target[axis])
        ]
        for axis in kept_dims[: len(symbolic_axes) - 1]:  # the last unknown dim stays -1
            numbers[axis] = 0
    return numbers if numbers.count(-1) <= 1 else None
