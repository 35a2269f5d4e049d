"""Checks that integers which rules compute in Python fit into the 64 bits of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import onnx_ir as ir

from smelt.errors import ResourceLimit

LIMITS = np.iinfo(np.int64)


class BeyondInt64(ResourceLimit):
    """A number does not fit into int64, such as the sum of two pads of 2^62 each.

    A rule that raises this does not fire; elsewhere the model is refused.
    """

    def __init__(self, what: str) -> None:
        super().__init__("E501", f"{what} does not fit into 64 bits")


def int64_array(numbers: Sequence[int] | int) -> np.ndarray:
    """Return ``numbers`` as an int64 array; raises BeyondInt64."""
    try:
        return np.asarray(numbers, dtype=np.int64)
    except OverflowError as error:
        raise BeyondInt64("a number computed from the model") from error


def check_attributes(node: ir.Node) -> None:
    """Raise BeyondInt64 if an integer attribute of ``node`` does not fit into 64 bits."""
    for attr in node.attributes.values():
        if not all(LIMITS.min <= number <= LIMITS.max for number in _integers(attr)):
            raise BeyondInt64(f"the attribute {attr.name!r} of a {node.op_type}")


def _integers(attr: ir.Attr) -> Iterable[int]:
    """Return the integers of ``attr``; none if it has another type or is a reference."""
    if attr.is_ref():
        return ()
    if attr.type == ir.AttributeType.INT:
        return (attr.as_int(),)
    return attr.as_ints() if attr.type == ir.AttributeType.INTS else ()
