"""The memory layout of a DotGeneral: one matrix product inside of loops over a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from smelt.errors import InternalError
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.nest import index, row_major
from smelt.program.dot_dims import DotDims
from smelt.program.run_sizes import same


@dataclass(frozen=True, slots=True)
class Axis:
    """Several dims merged to one: its size, and its stride in each operand, 0 if the operand lacks
    it.
    """

    size: int
    lhs: int
    rhs: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A DotGeneral as loops over ``batch`` around one matrix product."""

    batch: tuple[Axis, ...]
    m: Axis
    n: Axis
    k: Axis


def layout_of(dims: DotDims, lhs: Sequence[int], rhs: Sequence[int]) -> Layout | None:
    """Return the loops of a product of dense operands of shapes ``lhs`` and ``rhs``.

    None if the dims do not merge to one batch of matrices.
    """
    left, right = row_major(lhs), row_major(rhs)
    batch = [
        Axis(lhs[i], left[i], right[j]) for i, j in zip(dims.lhs_batch, dims.rhs_batch, strict=True)
    ]
    pairs = zip(dims.lhs_contracting, dims.rhs_contracting, strict=True)
    k = _merge([Axis(lhs[i], left[i], right[j]) for i, j in pairs])
    m = _merge([Axis(lhs[i], left[i], 0) for i in dims.lhs_free(len(lhs))])
    n = _merge([Axis(rhs[i], 0, right[i]) for i in dims.rhs_free(len(rhs))])
    if m is None or n is None or k is None:
        return None
    return Layout(tuple(axis for axis in batch if not same(axis.size, 1)), m, n, k)


def _merge(axes: Sequence[Axis]) -> Axis | None:
    """Return one axis for all ``axes``, None if their strides do not allow it."""
    merged = Axis(1, 0, 0)
    for axis in reversed(axes):
        if same(axis.size, 1):
            continue
        if same(merged.size, 1):
            merged = axis
            continue
        if not same((axis.lhs, axis.rhs), (merged.lhs * merged.size, merged.rhs * merged.size)):
            return None
        merged = replace(merged, size=merged.size * axis.size)
    return merged


def layout_of_instance(instance: Instance) -> Layout | None:
    """Return the loops of a DotGeneral, as ``layout_of`` does."""
    dims = instance.instruction.attributes["dims"]
    if not isinstance(dims, DotDims):
        raise InternalError("E960", "a DotGeneral without dimension numbers")
    return layout_of(dims, instance.shape(0), instance.shape(1))


def is_product(instance: Instance) -> bool:
    """True if a DotGeneral is a batch of matrix products in its operands' layout."""
    return layout_of_instance(instance) is not None


def at(pointer: str, strides: Sequence[int], variables: Sequence[str]) -> str:
    """Return the C of ``pointer`` advanced by ``strides`` times the loop ``variables``."""
    offset = index(strides, variables)
    return pointer if offset == "0" else f"{pointer} + {offset}"


def constant_matrix(instance: Instance, layout: Layout) -> np.ndarray:
    """Return the constant right operand as ``[k, n]``."""
    array = np.ascontiguousarray(instance.program.constants[instance.instruction.inputs[1]])
    n, k, itemsize = layout.n, layout.k, array.itemsize
    return np.lib.stride_tricks.as_strided(
        array, (k.size, n.size), (k.rhs * itemsize, n.rhs * itemsize), writeable=False
    )
