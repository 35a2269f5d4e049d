"""``smelt.Threefry2x32``: twenty rounds of the cipher that generates random numbers.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). Two words of a key and two
words of a counter, all uint32, broadcast as in NumPy; the two results are the words of the cipher
text.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim
from smelt.operators.declare import Arguments, Attributes, Computed, Operator, Result
from smelt.operators.inputs import present

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""Bits of the rotations of each round, for even and odd groups of four rounds."""

PARITY = 0x1BD11BDA
"""The XOR of this and the words of the key is the third word of its schedule."""

GROUPS = 5
"""The groups of four rounds: 20 rounds in all."""


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Return uint32 in the shape to which the inputs broadcast, for both results."""
    values = present(inputs)
    if len(values) != 4:
        raise ValueError("Threefry2x32 takes four operands")
    for value in values:
        if value.dtype not in (None, ir.DataType.UINT32):
            raise ValueError("Threefry2x32 takes uint32")
    shapes = [value.shape.dims for value in values if value.shape is not None]
    shape = None
    if len(shapes) == len(values):
        dims = zip_longest(*(dims[::-1] for dims in shapes), fillvalue=1)
        shape = ir.Shape([_broadcast_dim(group) for group in dims][::-1])
    return (Result(ir.DataType.UINT32, shape),) * 2


def _broadcast_dim(group: Sequence[Dim]) -> Dim:
    """Return the dim to which the dims ``group`` broadcast; unknown if symbols differ."""
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


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return both words of the cipher text, computed on whole arrays.

    A round adds the second word to the first and rotates the second; a group of four rounds ends
    with the addition of two key words and the group's number.
    """
    key0, key1, word0, word1 = np.broadcast_arrays(*(np.asarray(array) for array in inputs))
    keys = [key0, key1, key0 ^ key1 ^ np.uint32(PARITY)]
    with np.errstate(over="ignore"):  # Scalars warn of what arrays do silently.
        word0, word1 = word0 + key0, word1 + key1
        for group in range(GROUPS):
            for bits in ROTATIONS[group % 2]:
                word0 = word0 + word1
                word1 = ((word1 << np.uint32(bits)) | (word1 >> np.uint32(32 - bits))) ^ word0
            word0 = word0 + keys[(group + 1) % 3]
            word1 = word1 + (keys[(group + 2) % 3] + np.uint32(group + 1))
    return np.asarray(word0), np.asarray(word1)


def body(
    b: Builder, inputs: Sequence[ir.Value | None], attributes: Attributes
) -> tuple[ir.Value, ...]:
    """Build a Loop of additions, shifts and exclusive ors of uint32.

    Each iteration computes the four rounds of a group; the three words of the key are loop states.
    """
    key0, key1, word0, word1 = inputs
    parity = b.constant(np.uint32(PARITY))
    third_key = b.op("BitwiseXor", b.op("BitwiseXor", key0, key1), parity)
    first, second = b.op("Add", word0, key0), b.op("Add", word1, key1)
    # Loop states keep their shape, so both words are broadcast first, by adding zeros.
    first = b.op("Add", first, b.op("BitwiseXor", second, second))
    second = b.op("Add", second, b.op("BitwiseXor", first, first))
    state = (first, second, key0, key1, third_key)
    tables = [b.constant(np.asarray(column, np.uint32)) for column in STEPS]
    # Without shapes, one function serves calls of all shapes.
    types = [(ir.DataType.UINT32, None)] * len(state)
    inner, (group, go_on, *values) = b.branch(
        [(ir.DataType.INT64, ()), (ir.DataType.BOOL, ()), *types]
    )
    steps = [inner.op("Gather", table, group, axis=0) for table in tables]
    inner.graph.outputs.extend((inner.op("Identity", go_on), *_group(inner, values, steps)))
    count = b.constant(np.int64(GROUPS))
    words = b.ops("Loop", count, None, *state, outputs=len(state), body=inner.graph)
    return words[0], words[1]


STEPS = (
    *zip(*(ROTATIONS[group % 2] for group in range(GROUPS)), strict=True),
    *zip(*([32 - bits for bits in ROTATIONS[group % 2]] for group in range(GROUPS)), strict=True),
    range(1, GROUPS + 1),
)
"""Tables with one number per group of rounds: left shifts in each of four rounds, right shifts, and
the number of the group."""


def _group(
    b: Builder, state: Sequence[ir.Value], steps: Sequence[ir.Value]
) -> tuple[ir.Value, ...]:
    """Build one group of four rounds: return both words after the group, and the three words of the
    key in the order of the next group.

    ``steps`` are the four left shifts, the four right shifts and the number of the group.
    """
    first, second, key0, key1, key2 = state
    *shifts, group_number = steps
    for left_shift, right_shift in zip(shifts[:4], shifts[4:], strict=True):
        first = b.op("Add", first, second)
        high = b.op("BitShift", second, left_shift, direction="LEFT")
        low = b.op("BitShift", second, right_shift, direction="RIGHT")
        second = b.op("BitwiseXor", b.op("BitwiseOr", high, low), first)
    first = b.op("Add", first, key1)
    # Add the number to the key first: most keys are scalars, so this adds one element.
    second = b.op("Add", second, b.op("Add", key2, group_number))
    return (first, second, *(b.op("Identity", key) for key in (key1, key2, key0)))


OPERATOR = Operator(
    domain="smelt",
    name="Threefry2x32",
    summary="Twenty rounds of the cipher that generates random numbers",
    inputs=("k0", "k1", "x0", "x1"),
    outputs=("y0", "y1"),
    infer=infer,
    reference=reference,
    body=body,
    any_rank=True,
    opset=18,
)
