"""Random bits; PRNG keys are plain integers here."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from smelt.errors import Unsupported
from smelt.frontends.jax.compat import Dim, is_symbolic
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.plugins.elementwise.bits import shifted
from smelt.frontends.jax.plugins.programs.creation import counted
from smelt.frontends.jax.registry import lowers

INT64, UINT32 = ir.DataType.INT64, ir.DataType.UINT32

WORD = 1 << 32
"""How many numbers a uint32 can hold."""


@lowers("threefry2x32", broadcasts=True)
def threefry2x32(
    cx: Lowering, k0: ir.Value, k1: ir.Value, x0: ir.Value, x1: ir.Value
) -> tuple[ir.Value, ...]:
    """Lower to one operator, so that a graph does not repeat its hundred nodes for every draw.

    Shapes: any common shape; uint32 key words ``k0``, ``k1``, counters ``x0``, ``x1``, two results.
    """
    return cx.builder.ops("Threefry2x32", k0, k1, x0, x1, outputs=2, domain="smelt", name=None)


@lowers("iota_2x32_shape", broadcasts=True)
def iota_2x32_shape(cx: Lowering, *, shape: Sequence[Dim]) -> tuple[Operand, Operand]:
    """Return the number of each element of ``shape``, in row-major order, as two uint32 arrays.

    The first has the high 32 bits, the second the low ones.
    """
    dims = tuple(shape)
    size = prod(dims)
    if not is_symbolic(size) and size <= WORD:
        return Operand(cx.constant(np.uint32(0)), ()), Operand(_numbers(cx, dims, UINT32), dims)
    count = cx.cast(_numbers(cx, dims, INT64), ir.DataType.UINT64)
    high = cx.cast(shifted(cx, count, 32, "RIGHT"), UINT32)
    return Operand(high, dims), Operand(cx.cast(count, UINT32), dims)


def _numbers(cx: Lowering, dims: tuple[Dim, ...], dtype: ir.DataType) -> ir.Value:
    """Return the element numbers ``0, 1, ...`` in row-major order, with shape ``dims``."""
    numbers = counted(cx, prod(dims), dtype.numpy())
    array = cx.known(numbers)
    if array is not None:
        return cx.constant(array.reshape(dims))
    return numbers if len(dims) == 1 else cx.reshape(numbers, dims)


@lowers("random_clone", broadcasts=True)
def random_clone(cx: Lowering, _: ir.Value) -> list[Operand]:
    """Return the key; old-style keys reach this primitive as integers."""
    return list(cx.operands)


@lowers("rng_bit_generator", "rng_uniform")
def xla_generator(cx: Lowering, *_: ir.Value, **params: object) -> Unsupported:
    """Refuse: no specification says which numbers XLA's generator returns."""
    raise cx.unsupported(
        "XLA's generator returns other numbers on other devices and in other releases",
        fix="use keys of the default generator, threefry2x32",
    )
