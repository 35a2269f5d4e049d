"""Fourier transforms as DFT nodes, which take and return pairs of real and imaginary part."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.frontends.jax.complex_numbers.fourier import NODES
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.registry import lowers


@lowers(NODES)
def transform(
    cx: Lowering,
    *parts: ir.Value,
    axis: int,
    length: int,
    inverse: bool,
    onesided: bool,
) -> tuple[ir.Value, ...]:
    """Lower a transform of real or complex arrays to one DFT.

    ``onesided`` reads or returns half of a spectrum. JAX transposes the axis to the end; a DFT
    takes any axis, so the node reads the operands before that Transpose and transposes its results.
    """
    perm, parts = _common_transpose(parts)
    last, axis = cx.const_i64([-1]), axis if perm is None else perm[axis]
    apart = [cx.op("Unsqueeze", part, last) for part in parts]
    pairs = apart[0] if len(apart) == 1 else cx.op("Concat", *apart, axis=-1)
    sizes = (cx.const_i64(length), cx.const_i64(axis))
    result = cx.op("DFT", pairs, *sizes, inverse=int(inverse), onesided=int(onesided))
    if inverse and onesided:
        return (_transposed_back(cx, cx.op("Squeeze", result, last), perm),)
    places = [cx.const_i64([place]) for place in range(3)]
    cut = [cx.op("Slice", result, places[i], places[i + 1], last) for i in range(2)]
    return tuple(_transposed_back(cx, cx.op("Squeeze", part, last), perm) for part in cut)


def _common_transpose(
    parts: tuple[ir.Value, ...],
) -> tuple[Sequence[int] | None, tuple[ir.Value, ...]]:
    """Return ``(perm, sources)`` if every part is a Transpose by the same ``perm``.

    Otherwise ``(None, parts)``.
    """
    nodes = [part.producer() for part in parts]
    if any(node is None or node.op_type != "Transpose" or node.domain for node in nodes):
        return None, parts
    turns = [(node.attributes["perm"].as_ints(), node.inputs[0]) for node in nodes if node]
    given = tuple(value for _, value in turns if value is not None)
    perm = turns[0][0]
    same = len(given) == len(parts) and all(other == perm for other, _ in turns)
    return (perm, given) if same else (None, parts)


def _transposed_back(cx: Lowering, value: ir.Value, perm: Sequence[int] | None) -> ir.Value:
    return value if perm is None else cx.op("Transpose", value, perm=perm)
