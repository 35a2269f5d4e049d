"""Read gather, scatter and sort."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxlib.mlir.dialects import stablehlo

from smelt.frontends.stablehlo.bodies import only_operator
from smelt.frontends.stablehlo.operation import Operation
from smelt.frontends.stablehlo.registry import reads

SCATTERS = {
    "stablehlo.add": lax.scatter_add,
    "stablehlo.subtract": lax.scatter_sub,
    "stablehlo.multiply": lax.scatter_mul,
    "stablehlo.minimum": lax.scatter_min,
    "stablehlo.maximum": lax.scatter_max,
    "stablehlo.return": lax.scatter,
}
"""JAX's scatter for each body operator; ``stablehlo.return`` is a body that returns the update."""


def _vectors_last(indices: Any, dim: int) -> Any:
    """Return ``indices`` with its index vectors along the last axis, as JAX needs them.

    ``dim`` is their axis in StableHLO; the rank of ``indices`` stands for vectors of one element.
    """
    return indices[..., None] if dim == indices.ndim else jnp.moveaxis(indices, dim, -1)


@reads("gather", "dynamic_gather")
def _gather(cx: Any, op: Operation, x: Any, indices: Any, *sizes: Any) -> Any:
    """Read a gather; indices out of bounds are clipped."""
    mlir_numbers = stablehlo.GatherDimensionNumbers(op.view.attributes["dimension_numbers"])
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(mlir_numbers.offset_dims),
        collapsed_slice_dims=tuple(mlir_numbers.collapsed_slice_dims),
        start_index_map=tuple(mlir_numbers.start_index_map),
        operand_batching_dims=tuple(mlir_numbers.operand_batching_dims),
        start_indices_batching_dims=tuple(mlir_numbers.start_indices_batching_dims),
    )
    indices = _vectors_last(indices, mlir_numbers.index_vector_dim)
    window = cx.dims(op, sizes[0]) if sizes else op.integers("slice_sizes")
    return lax.gather(
        x,
        indices,
        numbers,
        window,
        indices_are_sorted=bool(op.integer("indices_are_sorted")),
        mode=lax.GatherScatterMode.CLIP,
    )


@reads("scatter")
def _scatter(cx: Any, op: Operation, *operands: Any) -> Any:
    """Read a scatter into one tensor; indices out of bounds are dropped."""
    if len(operands) != 3:
        raise op.unsupported("it scatters into several tensors at once")
    x, indices, updates = operands
    mlir_numbers = stablehlo.ScatterDimensionNumbers(
        op.view.attributes["scatter_dimension_numbers"]
    )
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(mlir_numbers.update_window_dims),
        inserted_window_dims=tuple(mlir_numbers.inserted_window_dims),
        scatter_dims_to_operand_dims=tuple(mlir_numbers.scattered_dims_to_operand_dims),
        operand_batching_dims=tuple(mlir_numbers.input_batching_dims),
        scatter_indices_batching_dims=tuple(mlir_numbers.scatter_indices_batching_dims),
    )
    scatter = SCATTERS.get(only_operator(op.view.regions[0]))
    if scatter is None:
        raise op.unsupported("its body is not a sum, product, extremum or replacement")
    return scatter(
        x,
        _vectors_last(indices, mlir_numbers.index_vector_dim),
        updates,
        numbers,
        indices_are_sorted=bool(op.integer("indices_are_sorted")),
        unique_indices=bool(op.integer("unique_indices")),
        mode=lax.GatherScatterMode.FILL_OR_DROP,
    )


@reads("sort")
def _sort(cx: Any, op: Operation, *operands: Any) -> Any:
    """Return the operands sorted together, by the first ``key_count`` operands.

    The comparator must be JAX's, which compares the keys lexicographically by "less". Arguments
    ``2 * i`` and ``2 * i + 1`` of a comparator are the two compared elements of operand ``i``, so
    a comparator of keys reads the first ``2 * key_count`` arguments.
    """
    block = op.view.regions[0].blocks[0]
    arguments_read = [
        position
        for position, argument in enumerate(block.arguments)
        if any(True for _ in argument.uses)
    ]
    directions = {
        Operation(inner).word("comparison_direction")
        for inner in block.operations
        if inner.operation.name == "stablehlo.compare"
    }
    key_count = (arguments_read[-1] // 2 + 1) if arguments_read else 0
    if (
        arguments_read != list(range(2 * key_count))
        or "LT" not in directions
        or directions - {"LT", "EQ", "NE"}
    ):
        raise op.unsupported("its comparator is not the one that jax.lax.sort writes")
    results = lax.sort(
        operands,
        dimension=op.integer("dimension", -1),
        is_stable=bool(op.integer("is_stable")),
        num_keys=key_count,
    )
    return list(results)
