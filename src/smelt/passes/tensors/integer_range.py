"""Prove bounds of the elements of an integer tensor from its computation.

Bounds hold for all inputs. A type bounds its elements; an operation that may overflow, and so wrap
around, gets the bounds of the type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.constants import Constants
from smelt.ir.known_forms import is_known

Bounds: TypeAlias = tuple[int, int]
"""No element is less than the first or more than the second; an empty tensor has any bounds."""

DEEP = 64
"""Limit of operations that a proof may go back."""


def integer_range(value: ir.Value, constants: Constants) -> Bounds | None:
    """Return the bounds of the elements of ``value``; None if they are not integers or booleans."""
    return _Proof(constants).bounds(value, 0)


class _Proof:
    """One walk back from a value; each value is bounded once."""

    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self.known: dict[ir.Value, Bounds | None] = {}

    def bounds(self, value: ir.Value | None, depth: int) -> Bounds | None:
        """Return the bounds of ``value``, at most those of its type; None for other types."""
        if value is None or value.dtype is None:
            return None
        if value not in self.known:
            limits = type_bounds(value.dtype)
            bounds = self.computed(value, depth) if limits is not None else None
            fits = limits and bounds and limits[0] <= bounds[0] and bounds[1] <= limits[1]
            self.known[value] = bounds if fits else limits
        return self.known[value]

    def computed(self, value: ir.Value, depth: int) -> Bounds | None:
        """Return the bounds of ``value`` from its elements or its producer; None if unknown.

        Also None beyond ``DEEP`` operations.
        """
        array = self.constants.get(value, limit=None)
        if array is not None:
            numbers = array.astype("int64") if array.dtype.kind == "V" else array
            return (int(numbers.min()), int(numbers.max())) if numbers.size else (0, 0)
        node = value.producer()
        if node is None or node.domain or depth >= DEEP:
            return None
        if not is_known(node):
            return None
        index = value.index() or 0
        if node.op_type in _POSITIONS:
            return _position(node, index)
        if node.op_type in _COUNTS:
            return 0, 2**63 - 1
        rule = _RULES.get(node.op_type)
        if rule is None:
            return None
        operands = [self.bounds(operand, depth + 1) for operand in node.inputs]
        return rule(node, operands)


def type_bounds(dtype: ir.DataType) -> Bounds | None:
    """Return the range of an integer or boolean type; None for other types."""
    if dtype == ir.DataType.BOOL:
        return 0, 1
    if not dtype.is_integer():
        return None
    bits, signed = int(dtype.bitwidth), dtype.is_signed()
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


_POSITIONS = {"ArgMax": 0, "ArgMin": 0, "TopK": 1}
"""Operators that return indices along an axis, and the output that holds them."""

_COUNTS = frozenset({"Shape", "Size", "NonZero"})
"""Operators whose results are never negative."""


def _position(node: ir.Node, index: int) -> Bounds | None:
    """Return the bounds of the indices that ArgMax, ArgMin or TopK return.

    ``index`` is the number of the output; None for the values of TopK.
    """
    source = node.inputs[0]
    if index != _POSITIONS[node.op_type]:
        return None
    axis = node.attributes.get_int("axis", -1 if node.op_type == "TopK" else 0)
    if source is None or source.shape is None or not -len(source.shape) <= axis < len(source.shape):
        return None
    size = source.shape[axis]
    last = max(0, size - 1) if isinstance(size, int) else 2**63 - 1
    return 0, last


Operands: TypeAlias = list[Bounds | None]
Rule: TypeAlias = Callable[[ir.Node, Operands], Bounds | None]
"""Returns the bounds of the result of a node from the bounds of its operands."""


def _same_bounds(node: ir.Node, operands: Operands) -> Bounds | None:
    """Return the bounds of the first operand, whose elements the node moves or casts."""
    return operands[0]


def _union(node: ir.Node, operands: Operands) -> Bounds | None:
    """Return the bounds of a Concat or Where: the lowest and the highest of the joined operands.

    None if one is unknown. The condition of Where does not count.
    """
    choices = operands[1:] if node.op_type == "Where" else operands
    known_choices = [bounds for bounds in choices if bounds is not None]
    if len(known_choices) < len(choices) or not known_choices:
        return None
    return min(low for low, _ in known_choices), max(high for _, high in known_choices)


def _bounds_of_extreme(node: ir.Node, operands: Operands) -> Bounds | None:
    """Return the bounds of Max or Min; None if an operand has none."""
    known_operands = [bounds for bounds in operands if bounds is not None]
    if len(known_operands) < len(operands) or not known_operands:
        return None
    pick = max if node.op_type == "Max" else min
    return pick(low for low, _ in known_operands), pick(high for _, high in known_operands)


def _clip(node: ir.Node, operands: Operands) -> Bounds | None:
    """Return the bounds of a Clip, ``min(max(x, lower), upper)``; None if an operand has none."""
    bounds = operands[0]
    for operand, limit, pick in zip(node.inputs[1:], operands[1:], (max, min), strict=False):
        if operand is None:
            continue
        if bounds is None or limit is None:
            return None
        bounds = pick(bounds[0], limit[0]), pick(bounds[1], limit[1])
    return bounds


def _mod(node: ir.Node, operands: Operands) -> Bounds | None:
    """Return the bounds of a Mod whose divisor cannot be 0, else None."""
    dividend, divisor = operands
    if dividend is None or divisor is None or divisor[0] <= 0 <= divisor[1]:
        return None
    largest = max(abs(divisor[0]), abs(divisor[1])) - 1
    if node.attributes.get_int("fmod", 0):
        # The result has the sign of the dividend.
        return (0 if dividend[0] >= 0 else -largest), (0 if dividend[1] <= 0 else largest)
    return (0, largest) if divisor[0] > 0 else (-largest, 0)


def _add(node: ir.Node, operands: Operands) -> Bounds | None:
    """Return the bounds of a sum; None if an operand has none."""
    a, b = operands
    return (a[0] + b[0], a[1] + b[1]) if a and b else None


def _sub(node: ir.Node, operands: Operands) -> Bounds | None:
    """Return the bounds of a difference; None if an operand has none."""
    a, b = operands
    return (a[0] - b[1], a[1] - b[0]) if a and b else None


def _mul(node: ir.Node, operands: Operands) -> Bounds | None:
    """Return the bounds of a product, whose extremes are products of the operands' extremes.

    None if an operand has none.
    """
    a, b = operands
    if a is None or b is None:
        return None
    products = [a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]]
    return min(products), max(products)


def _abs(node: ir.Node, operands: Operands) -> Bounds | None:
    """Return the bounds of Abs; None if the operand has none."""
    bounds = operands[0]
    if bounds is None:
        return None
    low, high = sorted((abs(bounds[0]), abs(bounds[1])))
    return (0 if bounds[0] <= 0 <= bounds[1] else low), high


def _range(node: ir.Node, operands: Operands) -> Bounds | None:
    """Return the bounds of a Range with a positive step; None for other steps."""
    start, limit, delta = operands
    if start is None or limit is None or delta is None or delta[0] <= 0:
        return None
    return start[0], max(start[0], limit[1] - 1)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(opset.MOVEMENT - {"Concat", "Pad"}, _same_bounds),
    "Cast": _same_bounds,
    **dict.fromkeys(("Concat", "Where"), _union),
    **dict.fromkeys(("Max", "Min"), _bounds_of_extreme),
    "Clip": _clip,
    "Mod": _mod,
    "Add": _add,
    "Sub": _sub,
    "Mul": _mul,
    "Abs": _abs,
    "Range": _range,
}
