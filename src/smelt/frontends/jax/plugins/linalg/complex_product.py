"""Lower products of complex arrays to ``smelt.DotGeneral`` of pairs, with its flags ``conj``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import onnx_ir as ir

from smelt.frontends.jax.complex_numbers.products import PRODUCT
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.plugins.linalg.contraction import ints
from smelt.frontends.jax.registry import lowers
from smelt.ir.constants import tensor_of


@dataclass(frozen=True)
class _Operand:
    """A complex operand as its parts, after Transposes and conjugates were taken off.

    ``perm`` is the order of the dims of the operand among those of the parts.
    """

    re: ir.Value
    im: ir.Value
    perm: tuple[int, ...]
    conj: bool = False


@lowers(PRODUCT)
def product(cx: Lowering, *parts: ir.Value, dimension_numbers: Any) -> tuple[ir.Value, ir.Value]:
    """Lower to DotGeneral of pairs, whose result is split into its parts.

    A conjugated operand sets a flag, and a transposed one changes the dimension numbers: both are
    looked up among the nodes that computed the parts.
    """
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    ranks = [len(cx.avals_in[position].shape) for position in (0, 2)]
    lhs, rhs = (
        _Operand(parts[2 * side], parts[2 * side + 1], tuple(range(rank)))
        for side, rank in enumerate(ranks)
    )
    lhs = _peeled(lhs, _free(ranks[0], lhs_contracting, lhs_batch))
    rhs = _peeled(rhs, _free(ranks[1], rhs_contracting, rhs_batch))
    (left, lhs_conj), (right, rhs_conj) = _pairs(cx, lhs), _pairs(cx, rhs)
    result = cx.op(
        "DotGeneral",
        left,
        right,
        domain="smelt",
        lhs_contracting=ints(lhs.perm[dim] for dim in lhs_contracting),
        rhs_contracting=ints(rhs.perm[dim] for dim in rhs_contracting),
        lhs_batch=ints(lhs.perm[dim] for dim in lhs_batch),
        rhs_batch=ints(rhs.perm[dim] for dim in rhs_batch),
        pairs=1,
        lhs_conj=1 if lhs_conj else None,
        rhs_conj=1 if rhs_conj else None,
    )
    last = cx.const_i64([-1])
    bounds = [cx.const_i64([bound]) for bound in range(3)]
    re, im = (cx.op("Slice", result, bounds[i], bounds[i + 1], last) for i in range(2))
    return cx.op("Squeeze", re, last), cx.op("Squeeze", im, last)


def _free(rank: int, *used: Any) -> list[int]:
    """Return the dims below ``rank`` that are not in ``used``."""
    return [dim for dim in range(rank) if not any(dim in dims for dims in used)]


def _peeled(operand: _Operand, free: Sequence[int]) -> _Operand:
    """Return ``operand`` before it was conjugated and transposed.

    A Transpose stays if it changes the order of the ``free`` dims.
    """
    while True:
        operand = _unconjugated(operand)
        re, im = operand.re.producer(), operand.im.producer()
        if not _is(re, "Transpose") or not _is(im, "Transpose"):
            return operand
        perm = re.attributes["perm"].as_ints()
        composed = tuple(perm[dim] for dim in operand.perm)
        kept = [composed[dim] for dim in free]
        if im.attributes["perm"].as_ints() != perm or kept != sorted(kept):
            return operand
        operand = replace(operand, re=_input(re), im=_input(im), perm=composed)


def _unconjugated(operand: _Operand) -> _Operand:
    """Return ``operand`` before its imaginary part alone was negated, with ``conj`` flipped."""
    node = operand.im.producer()
    if not _is(node, "Neg") or _is(operand.re.producer(), "Neg"):
        return operand
    return _unconjugated(replace(operand, im=_input(node), conj=not operand.conj))


def _input(node: ir.Node) -> ir.Value:
    """Return the first input of ``node``."""
    value = node.inputs[0]
    assert value is not None
    return value


def _is(node: ir.Node | None, op_type: str) -> TypeGuard[ir.Node]:
    """True if ``node`` is the ONNX operator ``op_type``."""
    return node is not None and not node.domain and node.op_type == op_type


def _pairs(cx: Lowering, operand: _Operand) -> tuple[ir.Value, bool]:
    """Return the pairs of ``operand``, and whether the product has to conjugate them.

    They are the tensor that the parts were taken from, if there is one, else a new one. Reshapes to
    known sizes come after that.
    """
    shape, sources = operand.re.shape, [part.producer() for part in (operand.re, operand.im)]
    if shape is not None and shape.is_static() and all(_is(node, "Reshape") for node in sources):
        re, im = (_input(node) for node in sources if node is not None)
        if re.shape is not None and re.shape == im.shape:
            pairs, conj = _pairs(cx, _unconjugated(replace(operand, re=re, im=im)))
            return cx.op("Reshape", pairs, cx.const_i64([*shape.numpy(), 2])), conj
    whole = _source(operand.re, 0)
    if whole is not None and whole is _source(operand.im, 1):
        return whole, operand.conj
    last = cx.const_i64([-1])
    parts = [cx.op("Unsqueeze", part, last) for part in (operand.re, operand.im)]
    return cx.op("Concat", *parts, axis=-1), operand.conj


def _source(part: ir.Value, number: int) -> ir.Value | None:
    """Return the tensor of pairs from which ``part`` takes element ``number`` of each pair; None if
    ``part`` is not such a Slice."""
    squeeze = part.producer()
    cut = _input(squeeze).producer() if _is(squeeze, "Squeeze") else None
    if part.shape is None or not _is(squeeze, "Squeeze") or not _is(cut, "Slice"):
        return None
    if len(cut.inputs) > 4:  # with steps
        return None
    starts, ends, *axes = (_integers(x) for x in (*cut.inputs[1:4], squeeze.inputs[1]))
    along_parts = all(each in ([len(part.shape)], [-1]) for each in axes)
    return _input(cut) if along_parts and (starts, ends) == ([number], [number + 1]) else None


def _integers(value: ir.Value | None) -> list[int] | None:
    """Return the numbers of a constant; None if ``value`` is none."""
    tensor = None if value is None else tensor_of(value)
    return None if tensor is None else tensor.numpy().ravel().tolist()
