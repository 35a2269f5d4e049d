"""Lower a function of a MIL program to an ONNX graph, operation by operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel, SmeltError, Unsupported
from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import NOT_READ, READERS, Result
from smelt.frontends.coreml.types import onnx_type, tensor_of
from smelt.ir.build import Builder
from smelt.ir.names import names_of
from smelt.mlpackage.program import (
    Argument,
    Block,
    Constant,
    ListType,
    Named,
    Operation,
    StateType,
    TensorType,
    ValueType,
)

Known: TypeAlias = Result
INTERNED = 1024
"""Constants up to this many bytes are shared if they are equal."""


@dataclass
class Shared:
    """What all blocks of one function share.

    ``builder`` makes constants in the main graph. ``opset`` is that of the function, such as
    ``CoreML7``. ``states`` holds the current value of each state, ``written`` the states that the
    program writes, ``refusals`` the errors so far, ``named`` the names that values already have,
    and ``growing`` the lists of dynamic length.
    """

    builder: Builder
    opset: str
    states: dict[str, ir.Value] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    refusals: list[SmeltError] = field(default_factory=list)
    named: set[str] = field(default_factory=set)
    growing: set[ir.Value] = field(default_factory=set)
    _equal: dict[tuple[str, tuple[int, ...], bytes], ir.Value] = field(default_factory=dict)
    _weights: dict[int, tuple[Constant, ir.Value]] = field(default_factory=dict)
    _flipped: dict[int, ir.Value] = field(default_factory=dict)

    def constant(self, array: np.ndarray | np.generic) -> ir.Value:
        """Return ``array`` as a constant of the main graph; equal small ones are shared."""
        array = np.asarray(array)
        if array.nbytes > INTERNED:
            return self.builder.constant(array.view())
        key = str(array.dtype), array.shape, array.tobytes()
        if key not in self._equal:
            self._equal[key] = self.builder.constant(array.copy())
        return self._equal[key]

    def weight(self, constant: Constant) -> ir.Value:
        """Return a constant of the program as a value of the main graph, the same in each call."""
        kept = self._weights.get(id(constant))
        if kept is None:
            tensor = tensor_of(constant)
            small = tensor.nbytes <= INTERNED and tensor.dtype.bitwidth >= 8
            if small and tensor.dtype != ir.DataType.STRING:
                value = self.constant(tensor.numpy())
            else:
                value = self.builder.tensor(tensor)
            kept = self._weights[id(constant)] = (constant, value)
        return kept[1]

    def flipped(self, constant: Constant) -> ir.Value:
        """Return a constant with its last two axes swapped."""
        if id(constant) not in self._flipped:
            array = np.asarray(tensor_of(constant).numpy()).swapaxes(-1, -2)
            self._weights.setdefault(id(constant), (constant, self.constant(array)))
            self._flipped[id(constant)] = self.constant(array)
        return self._flipped[id(constant)]

    @property
    def ios(self) -> int:
        """The iOS version of the opset, which decides what operators mean; at least 15."""
        digits = "".join(filter(str.isdigit, self.opset))
        return int(digits) + 10 if digits else 15


class Scope:
    """The names that are visible in one block, and the builder of its graph."""

    def __init__(self, builder: Builder, shared: Shared, outer: Scope | None = None) -> None:
        """Start without names; ``outer`` is the scope of the block around this one."""
        self.builder = builder
        self.shared = shared
        self.outer = outer
        self._names: dict[str, Known] = {}

    # -- names -------------------------------------------------------------------------------

    def define(self, name: str, known: Known) -> None:
        """Bind ``name``; a later operation of the same name hides an earlier one."""
        self._names[name] = known

    def known(self, argument: Argument) -> Known:
        """Return the value or Constant of an argument; raises InvalidModel E305 for an unknown
        name."""
        if isinstance(argument, Constant):
            return argument
        scope: Scope | None = self
        while scope is not None:
            if argument in scope._names:
                return scope._names[argument]
            scope = scope.outer
        raise InvalidModel(
            "E305",
            f"an operation of a Core ML program reads {argument!r}, which nothing before it writes",
            why="operations are listed in the order in which they run",
            fix="save the model again",
        )

    def as_value(self, known: Known) -> ir.Value:
        """Return ``known`` as a value of the graph; a Constant becomes a constant of it."""
        return self.shared.weight(known) if isinstance(known, Constant) else known

    # -- operations --------------------------------------------------------------------------

    def run(self, block: Block) -> list[Known]:
        """Lower the operations of ``block`` and return its outputs."""
        for operation in block.operations:
            self._operation(operation)
        return [self.known(name) for name in block.outputs]

    def body(self, block: Block, inputs: Sequence[Known]) -> list[Known]:
        """Lower ``block`` with the arguments ``inputs`` in an inner scope; return its outputs.

        Its nodes go into the graph of this scope.
        """
        inner = Scope(self.builder, self.shared, self)
        for named, value in zip(block.inputs, inputs, strict=True):
            inner.define(named.name, value)
        return inner.run(block)

    def _operation(self, operation: Operation) -> None:
        """Lower one operation.

        If its reader refuses it, the error is noted, and placeholders of the declared types stand
        for its results, so that further errors are found.
        """
        if operation.type == "const":
            self._constant(operation)
            return
        reader = READERS.get(operation.type)
        call = Call(operation, self)
        try:
            if reader is None:
                raise _not_read(call)
            results = reader(call)
        except Unsupported as refusal:
            self.shared.refusals.append(refusal)
            for named in operation.outputs:
                self.define(named.name, _placeholder(named))
            return
        listed = [results] if isinstance(results, ir.Value | Constant) else list(results)
        if len(listed) != len(operation.outputs):
            raise InvalidModel(
                "E308",
                f"operator {operation.type!r} of Core ML has {len(operation.outputs)} results",
                at=call.place(),
                why=f"with these arguments it has {len(listed)}",
                fix="save the model again",
            )
        for named, result in zip(operation.outputs, listed, strict=True):
            if isinstance(result, ir.Value):
                _check_type(named, result, operation.type)
                self._name(named.name, result)
            self.define(named.name, result)

    def _constant(self, operation: Operation) -> None:
        """Bind the name of a const operation to its Constant; raises InvalidModel E308 without."""
        if "val" not in operation.attributes or len(operation.outputs) != 1:
            raise InvalidModel(
                "E308",
                "a const operation of a Core ML program has no value",
                at=[each.name for each in operation.outputs],
                why="its attribute val is missing, or it has not one output",
                fix="save the model again",
            )
        self.define(operation.outputs[0].name, operation.attributes["val"])

    def _name(self, name: str, value: ir.Value) -> None:
        """Give a new value its name in the program, unless another value has that name already.

        Blocks of a program may reuse a name, the values of an ONNX model may not.
        """
        if value.producer() is None or value.name in self.shared.named:
            return
        if name not in self.shared.named:
            value.name = name
            self.shared.named.add(name)


def reserve_names(builder: Builder, block: Block) -> None:
    """Reserve all names in ``block`` and its inner blocks, so that nodes of readers get others."""
    taken = names_of(builder.model).taken
    stack = [block]
    while stack:
        inner = stack.pop()
        taken.update(each.name for each in inner.inputs)
        for operation in inner.operations:
            taken.update(each.name for each in operation.outputs)
            stack += operation.blocks


def _not_read(call: Call) -> Unsupported:
    """Return the error for an operator without a reader."""
    name = call.operation.type
    return Unsupported(
        "E120",
        f"operator {name!r} of Core ML is not read",
        at=call.place(),
        why=NOT_READ.get(name, "it is no operator of the opsets of iOS 15 to 18"),
        fix="convert the source model without it, or cut the model before it",
    )


def tensor_type(kind: ValueType) -> TensorType:
    """Return the type of the tensor that a MIL value becomes.

    A state becomes the tensor in it, a list the tensor of its stacked elements. Raises Unsupported
    E105 for other types.
    """
    if isinstance(kind, StateType):
        kind = kind.wrapped
    if isinstance(kind, ListType) and isinstance(kind.element, TensorType):
        dims = kind.element.dims
        return TensorType(kind.element.element, None if dims is None else (kind.length, *dims))
    if not isinstance(kind, TensorType):
        raise Unsupported(
            "E105",
            f"a Core ML program has a value of type {type(kind).__name__}",
            why="smelt reads tensors, and lists and states of tensors",
            fix="convert the source model without it",
        )
    return kind


def _placeholder(named: Named) -> ir.Value:
    """Return a value of the declared type without a node, for a result of a refused operation."""
    value = ir.Value(name=named.name)
    try:
        kind = tensor_type(named.type)
        value.type = ir.TensorType(onnx_type(kind.element))
        value.shape = None if kind.dims is None else ir.Shape(kind.dims)
    except Unsupported:
        pass  # its reader is refused already
    return value


def _check_type(named: Named, value: ir.Value, operator: str) -> None:
    """Set the type and shape of ``value`` to the declared ones where inference found none.

    Raises InvalidModel E309 or E317 if declared and inferred ones contradict each other.
    """
    if not isinstance(named.type, TensorType):
        return
    declared, dims = onnx_type(named.type.element), named.type.dims
    if value.dtype is None:
        value.type = ir.TensorType(declared)
    elif value.dtype != declared:
        raise InvalidModel(
            "E309",
            f"operator {operator!r} of Core ML declares a result of type {declared.name.lower()}",
            at=f"value {named.name!r}",
            why=f"with these arguments its result is of type {value.dtype.name.lower()}",
            fix="save the model again",
        )
    if dims is None:
        return
    if value.shape is None:
        value.shape = ir.Shape(dims)
    pairs = list(zip(value.shape.dims, dims, strict=False))
    differ = any(isinstance(a, int) and b is not None and a != b for a, b in pairs)
    if len(value.shape) != len(dims) or differ:
        raise InvalidModel(
            "E317",
            f"operator {operator!r} of Core ML declares a result of shape {list(dims)}",
            at=f"value {named.name!r}",
            why=f"with these arguments its shape is {[str(d) for d in value.shape.dims]}",
            fix="save the model again",
        )
