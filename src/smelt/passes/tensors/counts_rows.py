"""Decide whether indices count the rows of a flattened tensor in order."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.same_shape import same_dim
from smelt.ir.symbolic_dims.element_counts import dim_product
from smelt.ir.value_facts.affine import Affine
from smelt.ir.value_facts.affine_proof import AffineProof
from smelt.ir.value_facts.dim_from_shape import dim_from_shape
from smelt.ir.walk import producer_of


def counts_rows(indices: ir.Value, rows: ir.Value, source: ir.Value, constants: Constants) -> bool:
    """True if it is proved that ``indices`` are 0, 1, 2, ... in order, one for each of ``rows``.

    ``source`` is the tensor that was flattened to ``rows``. For symbolic sizes B,S, the indices are
    b * S + s for all b and s.
    """
    if indices.shape is None or rows.shape is None or source.shape is None:
        return False
    dims = indices.shape.dims
    proof = AffineProof(constants)
    form = proof.of(indices)
    sizes = [dim for dim in dims if isinstance(dim, int)]
    if form is None or len(sizes) < len(dims):
        return _is_row_major_of_two(indices, source, proof)
    return form == _row_major_numbers(sizes) and same_dim(rows.shape[0], dim_product(sizes))


def _row_major_numbers(sizes: list[int]) -> Affine:
    """Return the affine form of the row-major element numbers of a tensor of ``sizes``."""
    steps: list[int] = []
    step = 1
    for size in reversed(sizes):
        steps.insert(0, step if size != 1 else 0)
        step *= size
    return Affine(0, tuple(steps))


def _is_row_major_of_two(indices: ir.Value, source: ir.Value, proof: AffineProof) -> bool:
    """True if ``indices``, with two dims that are not 1, are b * S + s for a source B,S."""
    node, shape = producer_of(indices, "Add"), source.shape
    if node is None or indices.shape is None or shape is None or len(shape) != 2:
        return False
    long_axes = [axis for axis, dim in enumerate(indices.shape.dims) if dim != 1]
    if len(long_axes) != 2 or not all(
        same_dim(indices.shape[axis], dim) for axis, dim in zip(long_axes, shape.dims, strict=True)
    ):
        return False
    for scaled, minor in (node.inputs, node.inputs[::-1]):
        product = producer_of(scaled, "Mul")
        if product is None or not _is_counter(minor, long_axes[1], indices, proof):
            continue
        for counter, size in (product.inputs, product.inputs[::-1]):
            size_dim = dim_from_shape(size)
            if size_dim is not None and same_dim(size_dim, shape[1]):
                return _is_counter(counter, long_axes[0], indices, proof)
    return False


def _is_counter(value: ir.Value | None, axis: int, indices: ir.Value, proof: AffineProof) -> bool:
    """True if ``value``, broadcast to ``indices``, is the index along ``axis``."""
    form = proof.of(value)
    if form is None or indices.shape is None:
        return False
    rank = len(indices.shape)
    expected = Affine(0, tuple(int(i == axis) for i in range(rank)))
    return len(form.steps) <= rank and form.broadcast_to_rank(rank) == expected
