"""The element type of a value, even before shape inference."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import onnx_ir as ir

from smelt.ir.opset import versions
from smelt.ir.signature import signature_of


class ElementTypes:
    """Finds and caches the element types of one model, which imports ``opset``.

    ONNX schemas say which inputs have the type of a result, so no shapes are inferred.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self._known: dict[ir.Value, ir.DataType | None] = {}

    def of(self, value: ir.Value) -> ir.DataType | None:
        """Return the element type of ``value``, its own or one that its producers determine.

        None if they determine none.
        """
        path: list[ir.Value] = []
        current: ir.DataType | ir.Value | None = value
        while isinstance(current, ir.Value):
            if current.dtype is not None or current in self._known:
                current = current.dtype or self._known.get(current)
                break
            path.append(current)
            self._known[current] = None  # ends the walk around a cycle
            current = self._type_or_alias(current)
        for passed in path:
            self._known[passed] = current
        return current

    def note(self, values: Iterable[ir.Value | None]) -> None:
        """Set the type of each of ``values`` that has none, where it can be found."""
        for value in values:
            if value is not None and value.type is None:
                dtype = self.of(value)
                value.type = None if dtype is None else ir.TensorType(dtype)

    def _type_or_alias(self, value: ir.Value) -> ir.DataType | ir.Value | None:
        """Return the type of ``value``, or another value that has the same type, or None."""
        if value.const_value is not None:
            return value.const_value.dtype
        node = value.producer()
        return None if node is None else _of_result(node, value, self.opset)


def type_by_schema(node: ir.Node, value: ir.Value, opset: int) -> ir.DataType | None:
    """Return the element type of ``value``, a result of ``node``, by the operator's schema.

    None if the schema and the types of the operands do not determine it.
    """
    result = _of_result(node, value, opset)
    return result.dtype if isinstance(result, ir.Value) else result


def _of_result(node: ir.Node, value: ir.Value, opset: int) -> ir.DataType | ir.Value | None:
    """Return the type of the result ``value`` of ``node``, or an operand that has the same type.

    None if the schema says neither.
    """
    if not node.domain:
        for name in ("to", "dtype"):
            if name in node.attributes and not node.attributes[name].is_ref():
                return ir.DataType(node.attributes[name].as_int())
        if node.op_type == "Constant" and "value" in node.attributes:
            return node.attributes["value"].as_tensor().dtype
    signature = signature_of(node.op_type, opset, node.domain)
    if signature is None:
        return None
    result = signature.outputs[min(value.index() or 0, len(signature.outputs) - 1)]
    if len(result.types) == 1:
        return next(iter(result.types))
    same_typed = [
        operand
        for formal, operand in zip(signature.inputs, node.inputs, strict=False)
        if operand is not None
        and formal.variable is not None
        and formal.variable == result.variable
    ]
    typed = [operand for operand in same_typed if operand.dtype is not None]
    candidates = typed or same_typed
    return candidates[0] if candidates else None


@cache
def first_opset(dtype: ir.DataType) -> int:
    """Return the first opset whose Cast accepts ``dtype``; 0 if none does."""
    signatures = ((version, signature_of("Cast", version, "")) for version in versions("Cast"))
    accepting = [
        v for v, signature in signatures if signature and dtype in signature.inputs[0].types
    ]
    return min(accepting, default=0)
