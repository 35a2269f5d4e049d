"""Recognize a normalization: ``x`` or ``x - mean(x)`` over a standard deviation of ``x``.

The quotient is a Div, or a Mul by a reciprocal; a scale may be anywhere in the product. TensorFlow
and Keras multiply out: ``x * inverse + (bias - mean * inverse)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.walk import Walk, attempt, both_orders
from smelt.passes.norms.grouped_moments import GroupedMomentReader
from smelt.passes.norms.moments import Deviation, MomentReader, broadcasts_against

Value: TypeAlias = "ir.Value | None"
Values: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True)
class NormForm:
    """x over ``deviation``, times ``scale`` and plus ``bias`` where these are not None."""

    deviation: Deviation
    scale: Value
    bias: Value


def read_product(walk: Walk, constants: Constants) -> NormForm | None:
    """Return the normalization that the root of ``walk``, a Mul or a Div, computes, else None."""
    for kind in (MomentReader, GroupedMomentReader):
        reader = kind(constants, walk)
        for denominator, deviation, factors in _quotients(reader, walk.root):
            if not reader.broadcasts(denominator, deviation):
                continue
            for numerator, scale in _numerators(reader, factors):
                if _is_numerator(reader, numerator, deviation):
                    return NormForm(reader.ungrouped(deviation), scale, bias=None)
    return None


def read_multiplied_out(
    walk: Walk, product: ir.Value, offset: ir.Value, constants: Constants
) -> NormForm | None:
    """Return the normalization that ``product + offset`` computes, or ``product - offset`` for a
    Sub; else None.

    ``offset`` is ``bias - mean * inverse``, a variant with a negated mean, or either without a
    bias.
    """
    reader = MomentReader(constants, walk)
    is_sum = walk.root.op_type == "Add"
    for x, inverse in _factors(reader, product):
        for broadcast_inverse, deviation, scale in _inverses(reader, inverse):
            if not deviation.centred or deviation.x is not x:
                continue
            bias = _shift(reader, offset, inverse, deviation, is_sum)
            if bias is not None and broadcasts_against(
                broadcast_inverse, deviation.x, deviation.axes
            ):
                return NormForm(deviation, scale, bias[0])
    return None


@attempt
def _quotients(reader: MomentReader, root: ir.Node) -> Iterator[tuple[Value, Deviation, Values]]:
    """Yield ways to read ``root`` as factors over a deviation: ``(denominator, deviation,
    factors)``.

    ``factors`` holds one or two values, whose product is divided.
    """
    if root.op_type == "Div":
        numerator, denominator = root.inputs
        for deviation in reader.deviation(denominator):
            yield denominator, deviation, (numerator,)
        return
    for other, factor in both_orders(root):
        for denominator_of_factor, deviation, scale in _inverses(reader, factor):
            yield denominator_of_factor, deviation, (other,) if scale is None else (other, scale)


@attempt
def _inverses(reader: MomentReader, value: Value) -> Iterator[tuple[Value, Deviation, Value]]:
    """Yield ways to read ``value`` as scale over a deviation: ``(factor, deviation, scale or
    None)``.

    ``factor`` is the value that holds the deviation or its reciprocal.
    """
    for deviation in reader.inverse(value):
        yield value, deviation, None
    product = reader.walk.up(value, "Mul", "Div")
    if product is None:
        return
    if product.op_type == "Div":
        for deviation in reader.deviation(product.inputs[1]):
            yield product.inputs[1], deviation, product.inputs[0]
        return
    for scale, factor in both_orders(product):
        for deviation in reader.inverse(factor):
            yield factor, deviation, scale


@attempt
def _numerators(reader: MomentReader, factors: Values) -> Iterator[tuple[Value, Value]]:
    """Yield ways to split the product of ``factors``: ``(numerator, scale or None)``.

    ``factors`` holds two values, or one that may itself be the product of two.
    """
    if len(factors) == 2:
        yield factors[0], factors[1]
        yield factors[1], factors[0]
        return
    yield factors[0], None
    yield from _factors(reader, factors[0])


@attempt
def _factors(reader: MomentReader, value: Value) -> Iterator[tuple[Value, Value]]:
    """Yield the two factors of ``value``, in both orders, if it is a product."""
    product = reader.walk.up(value, "Mul")
    if product is not None:
        yield from both_orders(product)


@attempt
def _is_numerator(reader: MomentReader, value: Value, deviation: Deviation) -> bool:
    """True if ``value`` is the numerator that belongs to ``deviation``: x - mean(x), or x."""
    if deviation.centred:
        return reader.is_centred(value, deviation)
    if value is deviation.x:
        return True
    minus = reader.walk.up(value, "Sub")  # flax subtracts a mean of zeros in RMSNorm
    return (
        minus is not None and minus.inputs[0] is deviation.x and _is_zero(reader, minus.inputs[1])
    )


@attempt
def _is_zero(reader: MomentReader, value: Value) -> bool:
    """True if ``value`` is a constant of zeros, reshaped or expanded."""
    value = reader.before_reshapes(value)
    node = reader.walk.up(value, "Expand")
    return reader.constants.is_filled(node.inputs[0] if node is not None else value, 0.0)


@attempt
def _shift(
    reader: MomentReader,
    offset: Value,
    inverse: Value,
    deviation: Deviation,
    added: bool,
) -> tuple[Value] | None:
    """Return ``(bias,)`` if ``offset`` subtracts the scaled mean from the product, else None.

    ``bias`` is None if ``offset`` is only the scaled mean, ``mean * inverse``. ``added``: the root
    is ``product + offset``; otherwise it is ``product - offset``, which has no form with a bias.
    """
    if not added:
        return (
            (None,) if _is_scaled_mean(reader, offset, inverse, deviation, negated=False) else None
        )
    if _is_scaled_mean(reader, offset, inverse, deviation, negated=True):
        return (None,)
    node = reader.walk.up(offset, "Sub", "Add")
    if node is None:
        return None
    if node.op_type == "Sub":
        bias, scaled_mean = node.inputs
        is_shift = _is_scaled_mean(reader, scaled_mean, inverse, deviation, negated=False)
        return (bias,) if is_shift else None
    for bias, scaled_mean in both_orders(node):
        if _is_scaled_mean(reader, scaled_mean, inverse, deviation, negated=True):
            return (bias,)
    return None


@attempt
def _is_scaled_mean(
    reader: MomentReader,
    value: Value,
    inverse: Value,
    deviation: Deviation,
    negated: bool,
) -> bool:
    """True if ``value`` is ``mean * inverse``, or minus that if ``negated``."""
    node = reader.walk.up(value, "Neg") if negated else None
    if node is not None:
        value, negated = node.inputs[0], False
    product = reader.walk.up(value, "Mul")
    if product is None:
        return False
    for mean, factor in both_orders(product):
        minus = reader.walk.up(mean, "Neg") if negated else None
        positive = minus.inputs[0] if minus is not None else mean
        if factor is inverse and (minus is not None) == negated:
            is_broadcast = broadcasts_against(positive, deviation.x, deviation.axes)
            return is_broadcast and reader.mean(positive) == (deviation.x, deviation.axes)
    return False
