"""Integers of a graph have 64 bits; those that rules compute in Python have as many as it takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import onnx_ir as ir

from smelt.errors import ResourceLimit

LIMITS = np.iinfo(np.int64)


class BeyondInt64(ResourceLimit):
    """A number that a graph cannot hold, such as the sum of two pads of 2^62 each.

    A rule that comes to it does not fire; anywhere else it refuses the model.
    """

    def __init__(self, what: str) -> None:
        super().__init__("E501", f"{what} does not fit into 64 bits")


def int64_array(numbers: Sequence[int] | int) -> np.ndarray:
    """``numbers`` as an array; raises BeyondInt64."""
    try:
        return np.asarray(numbers, dtype=np.int64)
    except OverflowError as error:
        raise BeyondInt64("a number computed from the model") from error


def check_attributes(node: ir.Node) -> None:
    """Raise BeyondInt64 if a file has no place for an attribute of ``node``."""
    for attr in node.attributes.values():
        if not all(LIMITS.min <= number <= LIMITS.max for number in _integers(attr)):
            raise BeyondInt64(f"the attribute {attr.name!r} of a {node.op_type}")


def _integers(attr: ir.Attr) -> Iterable[int]:
    if attr.is_ref():
        return ()
    if attr.type == ir.AttributeType.INT:
        return (attr.as_int(),)
    return attr.as_ints() if attr.type == ir.AttributeType.INTS else ()
