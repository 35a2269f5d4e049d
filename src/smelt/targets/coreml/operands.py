"""The operands, attributes and constants of one ONNX node."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.ir.opset import default_attribute
from smelt.mlpackage.program import Element
from smelt.targets.coreml.compact_weights import USERS, compacted
from smelt.targets.coreml.domains import FLOATS
from smelt.targets.coreml.facts import NARROW, Facts
from smelt.targets.coreml.half_constants import (
    LARGEST_HALF,
    as_float16,
    depends_on_operator,
    replacement_rule,
)
from smelt.targets.coreml.writer import Dims, Refused, Val

MANY = 4096
"""A larger constant is not converted when only the question is whether a node can be written."""


class Operands:
    """A node and what it reads. ``w`` writes operations."""

    def __init__(self, facts: Facts, node: ir.Node) -> None:
        """Choose the precision: float16 with precision fp16, unless ``keep`` names the node."""
        self.facts, self.node, self.w = facts, node, facts.writer
        self.half = facts.half and not facts.keeps(node)
        self.wide = False
        self._label = next((v.name for v in node.outputs if v.name), node.op_type) or ""

    def input(self, index: int) -> ir.Value | None:
        """Return ONNX input ``index``; None if it is absent."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def has(self, index: int) -> bool:
        """True if input ``index`` is present."""
        return self.input(index) is not None

    def element(self, value: ir.Value | None) -> Element:
        """Return the element type in which this node computes ``value``."""
        found = self.facts.element_of(None if value is None else value.dtype, half=self.half)
        return Element.FLOAT32 if self.wide and found == Element.FLOAT16 else found

    def widen(self) -> None:
        """Compute this node in float32, whatever the precision."""
        self.half, self.wide = False, True

    def widen_for(self, number: float) -> None:
        """Compute this node in float32 if ``number``, an epsilon, loses over 1/16 in float16."""
        with np.errstate(over="ignore"):
            narrow = float(np.float16(number))
        if not math.isclose(narrow, number, rel_tol=1 / 16):
            self.widen()

    def x(self, index: int = 0, element: Element | None = None) -> Val:
        """Return input ``index`` as a value of the program, cast to ``element`` if given."""
        value = self.input(index)
        if value is None:
            raise Refused(f"input {index} is absent")
        return self.read(value, element or self.element(value))

    def moved(self) -> Val:
        """Return input 0 for an operator that moves elements: bytes stay bytes from iOS 17 on."""
        value = self.input(0)
        found = None if value is None else self.facts.scope.original(value)
        is_bytes = found is not None and found.element in (Element.INT8, Element.UINT8)
        return found if found is not None and is_bytes and self.w.ios >= 17 else self.x()

    def as_written(self, index: int) -> Val:
        """Return input ``index`` in the element type in which its node wrote it."""
        value = self.input(index)
        found = None if value is None else self.facts.scope.original(value)
        return self.x(index) if found is None else found

    def read(self, value: ir.Value, element: Element) -> Val:
        """Return an ONNX value in the type ``element``.

        A constant is written at its first use, and so is a cast to another type. Raises Refused if
        the node that computes the value was not written.
        """
        scope = self.facts.scope
        found = scope.find(value, element)
        if found is not None:
            return found
        original = scope.original(value)
        if original is None:
            array = self.facts.constants.get(value, limit=None)
            if array is None and self.facts.dry:
                return Val(value.name or "value", element, self.dims(value))
            if array is None:
                raise Refused(f"its input {value.name!r} could not be written")
            if element == Element.FLOAT16 and depends_on_operator(array):
                key = value, element, replacement_rule(self.node)
                if key not in self.facts.stand_ins:
                    named = self.constant(array, element, value.name or "const")
                    self.facts.stand_ins[key] = named
                return self.facts.stand_ins[key]
            found = self.constant(array, element, value.name or "const")
            top = scope
            while top.outer is not None:
                top = top.outer
            top.values[value, element] = found
            return found
        found = self.cast(original, element)
        scope.add(value, found)
        return found

    def constant(self, array: np.ndarray, element: Element, name: str = "const") -> Val:
        """Return a constant with elements of type ``element``.

        Raises Refused for empty constants, numbers beyond 32 bits, and finite numbers beyond
        float16.
        """
        if 0 in array.shape:
            raise Refused(
                f"the constant {name!r} has a dimension of 0, which Core ML does not have"
            )
        if self.facts.dry and array.size > MANY:
            return Val(name, element, array.shape, array)
        if element == Element.INT32:
            _refuse_beyond_32_bits(array, name)
            return self.w.constant(_converted(array, np.int32), name)
        _refuse_beyond_float32(array, name)
        if element == Element.FLOAT16 and array.dtype != np.float16:
            return self._weight(self._as_float16(array, name), element, name)
        return self._weight(_converted(array, element.numpy), element, name)

    def _as_float16(self, array: np.ndarray, name: str) -> np.ndarray:
        """Return the constant ``name`` in float16.

        Numbers that stand for infinity and epsilons are replaced, and noted in ``clamped``. Raises
        Refused E406 for other numbers beyond float16.
        """
        narrow, is_changed = as_float16(array, self.node)
        if is_changed:
            self.facts.clamped[name] = self.node.name or self.node.op_type
        wide = np.asarray(array, np.float32)
        if bool((np.isinf(narrow) & np.isfinite(wide)).any()):
            largest = float(np.abs(wide[np.isfinite(wide)]).max())
            keep = self.node.name or self.node.op_type
            raise Refused(
                f"the constant {name!r} has {largest:.4g}, beyond float16's {LARGEST_HALF:.0f}",
                f"keep its reader in float32, --option keep={keep}, or use precision=fp32",
                "E406",
            )
        return narrow

    def _weight(self, array: np.ndarray, element: Element, name: str) -> Val:
        """Return a constant; with weights=compact, weights become palettes or sparse if
        possible.
        """
        if self.facts.compact and element in FLOATS and self.node.op_type in USERS:
            return compacted(self.w, array, element, name) or self.w.constant(array, name)
        return self.w.constant(array, name)

    def cast(self, value: Val, element: Element) -> Val:
        """Return ``value`` cast to ``element``; a cast to bool compares with 0."""
        if value.element == element:
            return value
        if element == Element.BOOL:
            zero = self.w.value(0.0 if value.is_float else 0, value.element)
            label = f"{value.name}_bool"
            return self.w.op("not_equal", Element.BOOL, value.dims, name=label, x=value, y=zero)
        words = {
            Element.FLOAT16: "fp16",
            Element.FLOAT32: "fp32",
            Element.INT32: "int32",
            Element.INT8: "int8",
            Element.UINT8: "uint8",
        }
        label = f"{value.name}_{words[element]}"
        return self.w.op("cast", element, value.dims, name=label, x=value, dtype=words[element])

    def dims(self, value: ir.Value | None) -> Dims:
        """Return the dims of an ONNX value, with None for an open size; raises Refused without
        rank.
        """
        if value is None or value.shape is None:
            raise Refused("the rank of a value is not known", "give the model shapes")
        return tuple(dim if isinstance(dim, int) else None for dim in value.shape.dims)

    def out_dims(self, index: int = 0) -> Dims:
        """Return the dims of result ``index``."""
        return self.dims(self.node.outputs[index])

    def out_element(self, index: int = 0) -> Element:
        """Return the element type of result ``index``."""
        return self.element(self.node.outputs[index])

    def array(self, index: int) -> np.ndarray | None:
        """Return input ``index`` as an array; None if it is absent or computed."""
        return self.facts.constants.get(self.input(index), limit=None)

    def ints(self, index: int) -> list[int] | None:
        """Return constant input ``index`` as a flat list of integers; None if it is absent or
        computed."""
        array = self.array(index)
        return None if array is None else [int(each) for each in array.reshape(-1)]

    def fixed_ints(self, index: int, what: str) -> list[int] | None:
        """Return input ``index`` as integers, None if absent; raises Refused if it is computed."""
        if not self.has(index):
            return None
        found = self.ints(index)
        if found is None:
            raise Refused(f"its {what} are computed; Core ML needs constants")
        return found

    def attribute(self, name: str) -> Any:
        """Return an attribute, or ONNX's default for it; None if it has none."""
        found = self.node.attributes.get(name)
        if found is not None:
            return found.value
        return default_attribute(self.node.op_type, name, self.facts.opset)

    def most_bits(self, index: int) -> int | None:
        """Return how many bits integer input ``index`` has at most; None if it may be negative.

        Whether a node can be written does not depend on it, and the bounds of all nodes before it
        would be computed for each node.
        """
        value = self.input(index)
        bounds = None if value is None or self.facts.dry else self.facts.bounds.of(value)
        return None if bounds is None or bounds[0] < 0 else int(bounds[1]).bit_length()

    def dtype(self, index: int = 0) -> ir.DataType | None:
        """Return the ONNX type of input ``index``."""
        value = self.input(index)
        return None if value is None else value.dtype

    def refuse_narrow(self, what: str) -> None:
        """Raise Refused for 8 and 16 bit integers, whose arithmetic wraps around."""
        if self.dtype() in NARROW:
            raise Refused(
                f"{what} of 8 and 16 bit integers wraps around; Core ML computes in 32 bits",
                "cast to int32",
            )


def _refuse_beyond_32_bits(array: np.ndarray, name: str) -> None:
    """Raise Refused E402 if the constant ``name`` has integers that int32 cannot hold."""
    limits = np.iinfo(np.int32)
    is_wide = array.dtype.kind in "iu" and array.dtype.itemsize >= 4
    if is_wide and (array.min() < limits.min or array.max() > limits.max):
        raise Refused(
            f"the constant {name!r} has integers beyond 32 bits",
            "use smaller integers; Core ML has none of 64 bits",
            "E402",
        )


def _refuse_beyond_float32(array: np.ndarray, name: str) -> None:
    """Raise Refused E402 for a float64 that becomes infinite in float32, or a scalar that becomes
    0.
    """
    if array.dtype != np.float64:
        return
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    is_lost = np.isinf(narrow) & np.isfinite(array)
    if array.size == 1:  # in a larger array, it is nothing beside the others
        is_lost |= (narrow == 0) & (array != 0)
    if is_lost.any():
        raise Refused(
            f"the constant {name!r} has {array[is_lost].flat[0]:.4g}, beyond float32",
            "use a number between 1.2e-38 and 3.4e38",
            "E402",
        )


def _converted(array: np.ndarray, dtype: Any) -> np.ndarray:
    """Return ``array`` with another element type; the same array if it has it already."""
    return array if array.dtype == dtype else array.astype(dtype)
