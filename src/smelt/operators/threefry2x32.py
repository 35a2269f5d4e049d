"""``smelt.Threefry2x32``: twenty rounds of the cipher that random numbers come from.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). Two words of a key and two of
a counter, all uint32, broadcast as in NumPy; the two results are the words of the cipher text.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim
from smelt.operators.declare import Attributes, Computed, Given, Operator, Result
from smelt.operators.inputs import present

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""Bits of the rotations of each round, for even and odd groups of four rounds."""

PARITY = 0x1BD11BDA
"""With the words of the key, the third word of its schedule."""

GROUPS = 5


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Both results have the shape that the inputs broadcast to."""
    values = present(inputs)
    if len(values) != 4:
        raise ValueError("Threefry2x32 takes four operands")
    for value in values:
        if value.dtype not in (None, ir.DataType.UINT32):
            raise ValueError("Threefry2x32 takes uint32")
    known = [value.shape.dims for value in values if value.shape is not None]
    shape = None
    if len(known) == len(values):
        dims = zip_longest(*(dims[::-1] for dims in known), fillvalue=1)
        shape = ir.Shape([_meet(group) for group in dims][::-1])
    return (Result(ir.DataType.UINT32, shape),) * 2


def _meet(group: Sequence[Dim]) -> Dim:
    """The dim that these broadcast to; two different symbols give an unknown one."""
    sizes = {dim for dim in group if isinstance(dim, int) and dim != 1}
    if len(sizes) > 1:
        raise ValueError(f"sizes {sorted(sizes)} do not broadcast")
    if sizes:
        return sizes.pop()
    symbols = {dim for dim in group if not isinstance(dim, int)}
    if not symbols:
        return 1
    first = symbols.pop()
    return ir.SymbolicDim(None) if symbols else first


def reference(inputs: Given, attributes: Attributes) -> Computed:
    """The cipher on whole arrays."""
    k0, k1, x0, x1 = np.broadcast_arrays(*(np.asarray(array) for array in inputs))
    keys = [k0, k1, k0 ^ k1 ^ np.uint32(PARITY)]
    with np.errstate(over="ignore"):  # Scalars warn of what arrays do silently.
        x0, x1 = x0 + k0, x1 + k1
        for group in range(GROUPS):
            for bits in ROTATIONS[group % 2]:
                x0 = x0 + x1
                x1 = ((x1 << np.uint32(bits)) | (x1 >> np.uint32(32 - bits))) ^ x0
            x0 = x0 + keys[(group + 1) % 3]
            x1 = x1 + (keys[(group + 2) % 3] + np.uint32(group + 1))
    return np.asarray(x0), np.asarray(x1)


def body(
    b: Builder, inputs: Sequence[ir.Value | None], attributes: Attributes
) -> tuple[ir.Value, ...]:
    """The same by additions, shifts and exclusive ors of uint32."""
    k0, k1, x0, x1 = inputs
    constants: dict[int, ir.Value] = {}

    def word(number: int) -> ir.Value:
        if number not in constants:
            constants[number] = b.constant(np.uint32(number))
        return constants[number]

    def rotated(x: Any, bits: int) -> ir.Value:
        left = b.op("BitShift", x, word(bits), direction="LEFT")
        return b.op("BitwiseOr", left, b.op("BitShift", x, word(32 - bits), direction="RIGHT"))

    keys = [k0, k1, b.op("BitwiseXor", b.op("BitwiseXor", k0, k1), word(PARITY))]
    first, second = b.op("Add", x0, k0), b.op("Add", x1, k1)
    for group in range(GROUPS):
        for bits in ROTATIONS[group % 2]:
            first = b.op("Add", first, second)
            second = b.op("BitwiseXor", rotated(second, bits), first)
        first = b.op("Add", first, keys[(group + 1) % 3])
        # Key and number first: keys mostly are single words.
        second = b.op("Add", second, b.op("Add", keys[(group + 2) % 3], word(group + 1)))
    return first, second


OPERATOR = Operator(
    domain="smelt",
    name="Threefry2x32",
    summary="Twenty rounds of the cipher that random numbers come from",
    inputs=("k0", "k1", "x0", "x1"),
    outputs=("y0", "y1"),
    infer=infer,
    reference=reference,
    body=body,
    any_rank=True,
    opset=18,
)
