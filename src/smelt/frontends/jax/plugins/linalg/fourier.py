"""Lower Fourier transforms to DFT nodes, whose last dim holds the real and the imaginary part."""

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
    """Lower a Fourier transform along ``axis`` to one DFT of ``length`` points.

    ``parts`` is one real array, or the real and the imaginary part. ``onesided`` without
    ``inverse`` returns half of the spectrum; with ``inverse`` the operand is half of a spectrum and
    the result is real. JAX transposes the axis to the end, but DFT takes any axis. So the node
    reads the operands before that Transpose, and its results are transposed instead.
    """
    perm, parts = _common_transpose(parts)
    last = cx.const_i64([-1])
    axis = axis if perm is None else perm[axis]
    expanded = [cx.op("Unsqueeze", part, last) for part in parts]
    pairs = expanded[0] if len(expanded) == 1 else cx.op("Concat", *expanded, axis=-1)
    sizes = (cx.const_i64(length), cx.const_i64(axis))
    result = cx.op("DFT", pairs, *sizes, inverse=int(inverse), onesided=int(onesided))
    if inverse and onesided:
        return (_transposed_back(cx, cx.op("Squeeze", result, last), perm),)
    bounds = [cx.const_i64([bound]) for bound in range(3)]
    halves = [cx.op("Slice", result, bounds[i], bounds[i + 1], last) for i in range(2)]
    return tuple(_transposed_back(cx, cx.op("Squeeze", part, last), perm) for part in halves)


def _common_transpose(
    parts: tuple[ir.Value, ...],
) -> tuple[Sequence[int] | None, tuple[ir.Value, ...]]:
    """Return ``(perm, sources)`` if every part is a Transpose by the same ``perm``.

    Otherwise ``(None, parts)``.
    """
    nodes = [part.producer() for part in parts]
    if any(node is None or node.op_type != "Transpose" or node.domain for node in nodes):
        return None, parts
    transposes = [(node.attributes["perm"].as_ints(), node.inputs[0]) for node in nodes if node]
    sources = tuple(value for _, value in transposes if value is not None)
    perm = transposes[0][0]
    same = len(sources) == len(parts) and all(other == perm for other, _ in transposes)
    return (perm, sources) if same else (None, parts)


def _transposed_back(cx: Lowering, value: ir.Value, perm: Sequence[int] | None) -> ir.Value:
    """Return ``value`` transposed by ``perm``; ``value`` itself if ``perm`` is None."""
    return value if perm is None else cx.op("Transpose", value, perm=perm)
