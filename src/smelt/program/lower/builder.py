"""Builds a Program from nodes: slots for values, instructions, and queries for lowerings.

A query such as ``ints`` or ``axes`` reads an attribute or a constant input of a node. It raises
Unsupported E201, with the reason, for a node that a Program cannot express.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.errors import InternalError, Unsupported
from smelt.ir import constants
from smelt.ir.opset import attribute, attribute_names
from smelt.ir.provenance import origin_of
from smelt.ir.quantization import quantization_of
from smelt.ir.shapes.state_types import is_tensor
from smelt.ir.symbolic_dims.dims import binding_advice
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import AttributeValue, Body, Dim, Instruction, Program, Slot
from smelt.program.lower.by_data import ByData
from smelt.program.lower.elements import Elements
from smelt.program.lower.refusal import refusal

ABSENT = -1
"""The slot number of an absent optional input."""

Supports: TypeAlias = Callable[[Program, Instruction], bool]
"""Returns True if a target has a kernel for an instruction that other targets split."""


def supports_none(program: Program, instruction: Instruction) -> bool:
    """Return False, for a target without such kernels."""
    return False


class ProgramBuilder:
    """Holds the Program that one graph becomes: the main graph of the model, or a body in it.

    ``node`` is the node that is being lowered, ``around`` the builder of the outer graph of a body.
    """

    def __init__(
        self,
        model: ir.Model,
        around: ProgramBuilder | None = None,
        supports: Supports = supports_none,
    ) -> None:
        """Begin an empty Program; it is that of a body if ``around`` builds the outer Program."""
        self.model = model
        self.around = around
        self.supports: Supports = supports if around is None else around.supports
        self.captured: dict[int, int] = {}
        """Slots of the outer Program that this body reads, each with its slot in the body."""
        self.opset = model.opset_imports.get("", 1)
        known = around.constants if around is not None else constants.Constants()
        self.constants: constants.Constants = known
        self.program = Program(model.graph.name or "model", [], (), (), {}, [])
        self.node: ir.Node | None = None
        self._slots: dict[ir.Value, int] = {}
        self.by_data = ByData()
        self.elements: Elements = around.elements if around is not None else Elements(model)

    # Slots

    def slot(self, value: ir.Value | None) -> int:
        """Return the slot that holds ``value``; a constant gets its slot on first use."""
        if value is None:
            return ABSENT
        known = self._slots.get(value)
        if known is not None:
            return known
        tensor = constants.tensor_of(value)
        if tensor is None and self.around is not None:
            return self._capture(value, self.around)
        if tensor is None:
            raise InternalError("E902", f"value {value.name!r} is read before it is written")
        array = np.asarray(tensor.numpy())
        slot = self._slot_of(value, tensor.dtype, array.shape)
        self.program.constants[slot] = _read_only(array)
        self._slots[value] = slot
        return slot

    def _capture(self, value: ir.Value, around: ProgramBuilder) -> int:
        """Return the body's slot for a value of the outer graph, which becomes an input of the
        body, or a constant of it."""
        outer = around.slot(value)
        if outer not in self.captured:
            described = around.program.slots[outer]
            slot = self.new(described.dtype, described.shape, described.name)
            constant = around.program.constants.get(outer)
            if constant is not None:
                self.program.constants[slot] = constant
                self._slots[value] = slot
                return slot
            self.captured[outer] = slot
        self._slots[value] = self.captured[outer]
        return self.captured[outer]

    def has_slot(self, value: ir.Value) -> bool:
        """True if ``slot`` can return a slot for ``value``."""
        if value in self._slots or constants.tensor_of(value) is not None:
            return True
        return self.around is not None and self.around.has_slot(value)

    def inputs(self, node: ir.Node) -> tuple[int, ...]:
        """Return the slots of all inputs of ``node``."""
        return tuple(self.slot(value) for value in node.inputs)

    def define(self, value: ir.Value) -> int:
        """Return a new slot for ``value``, whose dtype and rank must be known."""
        if value.dtype is None or value.shape is None or not is_tensor(value):
            raise self.refuse(f"the element type or rank of {value.name!r} is not known")
        slot = self._slot_of(value, value.dtype, value.shape.dims)
        self._slots[value] = slot
        return slot

    def _slot_of(self, value: ir.Value, dtype: ir.DataType, shape: Iterable[Dim]) -> int:
        """Return a new slot of this type for ``value``, with its name and quantization."""
        name = value.name or ("constant" if constants.tensor_of(value) is not None else "")
        slot = Slot(dtype, tuple(shape), name, quantization=quantization_of(value))
        return self.program.new_slot(slot)

    def alias(self, value: ir.Value, slot: int) -> None:
        """Make the existing ``slot`` hold ``value``."""
        self._slots[value] = slot

    def new(self, dtype: ir.DataType, shape: Iterable[Dim], name: str) -> int:
        """Return a new slot that holds no value of the graph."""
        return self.program.new_slot(Slot(dtype, tuple(shape), name))

    def constant(self, array: np.ndarray, name: str) -> int:
        """Return a new slot that holds ``array``, which becomes read-only."""
        slot = self.new(ir.DataType.from_numpy(array.dtype), array.shape, name)
        self.program.constants[slot] = _read_only(array)
        return slot

    def shape(self, slot: int) -> tuple[Dim, ...]:
        """Return the shape of a slot."""
        return self.program.slots[slot].shape

    def dtype(self, slot: int) -> ir.DataType:
        """Return the element type of a slot."""
        return self.program.slots[slot].dtype

    # Instructions

    def emit(
        self,
        op: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        **attributes: AttributeValue | DotDims,
    ) -> None:
        """Append one instruction with the current node as its origin."""
        origin = str(origin_of(self.node)) if self.node is not None else ""
        instruction = Instruction(op, tuple(inputs), tuple(outputs), attributes, (), origin)
        self.program.instructions.append(instruction)

    def emit_control(
        self,
        op: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        bodies: Iterable[Program],
        **attributes: AttributeValue,
    ) -> None:
        """Append one instruction that runs ``bodies``."""
        self.emit(op, inputs, outputs, **attributes)
        self.program.instructions[-1].bodies = tuple(map(Body, bodies))

    def emit_new(
        self,
        op: str,
        inputs: Sequence[int],
        shape: Iterable[Dim],
        *,
        dtype: ir.DataType | None = None,
        **attributes: AttributeValue | DotDims,
    ) -> int:
        """Append an instruction that writes a new slot, by default of its first input's dtype."""
        name = f"{self.node.name or self.node.op_type}/{op}" if self.node is not None else op
        slot = self.new(dtype if dtype is not None else self.dtype(inputs[0]), shape, name)
        self.emit(op, inputs, (slot,), **attributes)
        return slot

    def keep(self, node: ir.Node, **attributes: AttributeValue | DotDims) -> None:
        """Append ``node`` as an instruction of the same name, with all its inputs as operands."""
        inputs = list(self.inputs(node))
        while inputs and inputs[-1] == ABSENT:
            inputs.pop()
        self.emit(node.op_type, inputs, [self.define(v) for v in node.outputs], **attributes)

    def emit_if_supported(self, node: ir.Node, **attributes: AttributeValue | DotDims) -> bool:
        """Append ``node`` as in ``keep`` and return True, if the target has a kernel for it; else
        return False, and the caller emits simpler instructions."""
        self.keep(node, **attributes)
        instruction = self.program.instructions.pop()
        if self.supports(self.program, instruction):
            self.program.instructions.append(instruction)
            return True
        return False

    def refuse(self, why: str, fix: str = "") -> Unsupported:
        """Return the error E201: the current node cannot be lowered, for the reason ``why``."""
        return refusal(self.node, why, fix)

    def refuse_size(self, why: str) -> Unsupported:
        """Return the error E201 for a reason that depends on an unknown size; it advises to bind
        sizes."""
        advice = binding_advice(self.model.graph.inputs)
        return self.refuse(why, advice or "fold constants first, or fix the sizes in the model")

    def input(self, node: ir.Node, index: int) -> ir.Value | None:
        """Return input ``index`` of ``node``; None if it is absent."""
        return node.inputs[index] if index < len(node.inputs) else None

    def attributes(self, node: ir.Node) -> dict[str, AttributeValue]:
        """Return all attributes that ONNX defines for the operator, with default values where
        ``node`` lacks them."""
        attributes: dict[str, AttributeValue] = {}
        for name in attribute_names(node.op_type, self.opset):
            value = attribute(node, name, self.opset)
            if value is not None:
                attributes[name] = tuple(value) if isinstance(value, list) else value
        return attributes

    def rank(self, value: ir.Value | None) -> int:
        """Return the rank of ``value``, which must not be None."""
        assert value is not None
        return len(self.shape(self.slot(value)))

    def ints(self, node: ir.Node, name: str, index: int | None = None) -> tuple[int, ...] | None:
        """Return integers from attribute ``name`` or, in later opsets, the constant input
        ``index``.

        None if the node has neither. Refuses an input that is not constant.
        """
        attr = node.attributes.get(name)
        if attr is not None:
            value = attr.value
            return tuple(value) if isinstance(value, tuple | list) else (int(value),)
        source = self.input(node, index) if index is not None else None
        if source is None:
            return None
        integers = self.constants.ints(source)
        if integers is None:
            raise self.refuse_size(f"{name!r} is computed while the model runs")
        return integers

    def symbolic_ints(self, node: ir.Node, name: str, index: int) -> tuple[Dim, ...] | None:
        """Return integers as ``ints`` does; some may be expressions of the model's dims."""
        source = self.input(node, index)
        if source is None or self.constants.ints(source) is not None:
            return self.ints(node, name, index)
        integers = self.elements(source)
        if integers is None:
            raise self.refuse_size(f"{name!r} is computed while the model runs")
        return integers

    def scalar(self, node: ir.Node, name: str, index: int) -> int | float | None:
        """Return a number from attribute ``name`` or the constant input ``index``; None if the node
        has neither. Refuses an input that is not constant."""
        attr = node.attributes.get(name)
        if attr is not None:
            return float(attr.as_float())
        source = self.input(node, index)
        if source is None:
            return None
        number = self.constants.scalar(source)
        if number is None:
            raise self.refuse_size(f"{name!r} is computed while the model runs")
        return number

    def axes(self, axes: Iterable[int], rank: int) -> tuple[int, ...]:
        """Return ``axes`` as non-negative numbers; refuses an axis out of range or repeated."""
        listed = tuple(axes)
        from_front = tuple(axis + rank if axis < 0 else axis for axis in listed)
        if any(not 0 <= axis < rank for axis in from_front) or len(set(from_front)) < len(
            from_front
        ):
            raise self.refuse(f"axes {list(listed)} do not fit rank {rank}")
        return from_front

    def axis(self, axis: int, rank: int) -> int:
        """Return ``axis`` as a non-negative number."""
        return self.axes((axis,), rank)[0]


def _read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view of ``array``, or of an aligned copy, which kernels read faster."""
    view = np.require(array, requirements="A").view()
    view.flags.writeable = False
    return view
