"""Recognize a normalization: ``x`` or ``x - mean(x)``, over a standard deviation of ``x``.

The quotient is a Div, or a Mul by an inverse; a scale may stand anywhere in the product. TensorFlow
and Keras multiply out: ``x * inverse + (bias - mean * inverse)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.passes.norms.grouped_statistics import GroupedStatistics
from smelt.passes.norms.statistics import Spread, Statistics, stands_against

Values = tuple["ir.Value | None", ...]


@dataclass(frozen=True)
class NormForm:
    """A normalization by ``spread``, then times ``scale`` and plus ``bias`` where there are any.

    ``closed`` says that nothing else reads its parts.
    """

    spread: Spread
    scale: ir.Value | None
    bias: ir.Value | None
    closed: bool


def read_product(root: ir.Node, constants: Constants) -> NormForm | None:
    """The normalization whose last operation is ``root``, a Mul or a Div."""
    for kind in (Statistics, GroupedStatistics):
        statistics = kind(constants, root)
        for place, spread, others in _quotients(statistics, root):
            if not statistics.stands(place, spread):
                continue
            for numerator, scale in _numerators(statistics, others):
                if _is_numerator(statistics, numerator, spread):
                    whole = statistics.whole(spread)
                    return NormForm(whole, scale, None, statistics.is_closed())
    return None


def read_multiplied_out(
    root: ir.Node, product: ir.Value, rest: ir.Value, constants: Constants
) -> NormForm | None:
    """The same for ``product + rest``, or ``product - rest`` if ``root`` is a Sub.

    ``rest`` is ``bias - mean * inverse``, a variant with a negated mean, or that without a bias.
    """
    statistics = Statistics(constants, root)
    times = statistics.node(product, "Mul")
    if times is None:
        return None
    for x, inverse in _both_orders(times):
        for place, spread, scale in _inverses(statistics, inverse):
            if not spread.centred or spread.x is not x:
                continue
            found = _shift(statistics, rest, inverse, spread, root.op_type == "Add")
            if found is not None and stands_against(place, spread.x, spread.axes):
                return NormForm(spread, scale, found[0], statistics.is_closed())
    return None


def _quotients(s: Statistics, root: ir.Node) -> Iterator[tuple[ir.Value | None, Spread, Values]]:
    """Ways to read ``root`` as other factors over a deviation, and where that one stands."""
    if root.op_type == "Div":
        numerator, denominator = root.inputs
        for spread in s.deviation(denominator):
            yield denominator, spread, (numerator,)
        return
    for other, factor in _both_orders(root):
        for place, spread, scale in _inverses(s, factor):
            yield place, spread, (other,) if scale is None else (other, scale)


def _inverses(
    s: Statistics, value: ir.Value | None
) -> Iterator[tuple[ir.Value | None, Spread, ir.Value | None]]:
    """Ways to read ``value`` as one over a deviation, perhaps times a scale."""
    for spread in s.inverse(value):
        yield value, spread, None
    product = s.node(value, "Mul", "Div")
    if product is None:
        return
    if product.op_type == "Div":
        for spread in s.deviation(product.inputs[1]):
            yield product.inputs[1], spread, product.inputs[0]
        return
    for scale, factor in _both_orders(product):
        for spread in s.inverse(factor):
            yield factor, spread, scale


def _numerators(s: Statistics, others: Values) -> Iterator[tuple[ir.Value | None, ir.Value | None]]:
    """Which of the other factors may be the numerator, and the scale that is left."""
    if len(others) == 2:
        yield others[0], others[1]
        yield others[1], others[0]
        return
    yield others[0], None
    product = s.node(others[0], "Mul")
    if product is not None:
        yield from _both_orders(product)


def _is_numerator(s: Statistics, value: ir.Value | None, spread: Spread) -> bool:
    if spread.centred:
        return s.is_centred(value, spread)
    if value is spread.x:
        return True
    minus = s.node(value, "Sub")  # flax subtracts a mean of zeros in RMSNorm
    return minus is not None and minus.inputs[0] is spread.x and _is_zero(s, minus.inputs[1])


def _is_zero(s: Statistics, value: ir.Value | None) -> bool:
    value = s.plain(value)
    node = s.node(value, "Expand")
    return s.constants.is_filled(node.inputs[0] if node is not None else value, 0.0)


def _shift(
    s: Statistics, rest: ir.Value | None, inverse: ir.Value | None, spread: Spread, added: bool
) -> tuple[ir.Value | None] | None:
    """The bias, in a tuple, if ``rest`` takes the scaled mean away; the bias itself may be None."""
    if not added:
        return (None,) if _is_scaled_mean(s, rest, inverse, spread, negated=False) else None
    if _is_scaled_mean(s, rest, inverse, spread, negated=True):
        return (None,)
    node = s.node(rest, "Sub", "Add")
    if node is None:
        return None
    for bias, taken in (node.inputs,) if node.op_type == "Sub" else _both_orders(node):
        if _is_scaled_mean(s, taken, inverse, spread, negated=node.op_type == "Add"):
            return (bias,)
    return None


def _is_scaled_mean(
    s: Statistics, value: ir.Value | None, inverse: ir.Value | None, spread: Spread, negated: bool
) -> bool:
    """True for ``mean * inverse``, or for minus that."""
    node = s.node(value, "Neg") if negated else None
    if node is not None:
        value, negated = node.inputs[0], False
    product = s.node(value, "Mul")
    if product is None:
        return False
    for mean, factor in _both_orders(product):
        minus = s.node(mean, "Neg") if negated else None
        plain = minus.inputs[0] if minus is not None else mean
        if factor is inverse and (minus is not None) == negated:
            placed = stands_against(plain, spread.x, spread.axes)
            return placed and s.mean(plain) == (spread.x, spread.axes)
    return False


def _both_orders(node: ir.Node) -> tuple[tuple[ir.Value | None, ir.Value | None], ...]:
    first, second = node.inputs
    return (first, second), (second, first)
