"""Builds nodes with inferred types at one place of one graph.

The rewriter, the JAX frontend and the function bodies of operators all make their nodes here, so
dtype, shape, provenance and the opset import are never forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir import provenance, scope
from smelt.ir.int64 import check_attributes, int64_array
from smelt.ir.names import Names, names_below, names_of, share_names
from smelt.ir.node_inputs import detach
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.tensors.constants_on_disk import spilled

Attribute: TypeAlias = (
    int
    | float
    | str
    | bytes
    | Sequence[int]
    | Sequence[float]
    | Sequence[str]
    | ir.TensorProtocol
    | ir.Graph
    | ir.Attr
)

EXTENSION_VERSION = 1
"""The version under which domains other than ONNX's own are imported."""


class Builder:
    """Makes nodes in ``graph``: before ``before`` if given, else at its end.

    ``created`` lists the new nodes and ``initializers`` the new constants, in order. In a
    function body, where ONNX allows no initializers, constants become ``Constant`` nodes.
    """

    def __init__(
        self,
        model: ir.Model,
        graph: ir.Graph,
        shapes: ShapeInference,
        *,
        before: ir.Node | None = None,
        origin: provenance.Origin | Callable[[], provenance.Origin] | None = None,
        in_function: bool = False,
        kernels: frozenset[str] | None = None,
        extensions: frozenset[tuple[str, str]] = frozenset(),
        spills: bool = False,
    ) -> None:
        """Insert new nodes before the node ``before`` of ``graph``; None appends them.

        ``origin`` is stamped on new nodes. ``kernels`` are the ONNX operators that the target
        computes, None for all; ``extensions`` those beyond ONNX. ``spills``: move large constants
        to a file.
        """
        self.kernels = kernels
        self.extensions = extensions
        self.model = model
        self.graph = graph
        self.shapes = shapes
        self.before = before
        self.origin = origin
        self.in_function = in_function
        self.spills = spills
        self.created: list[ir.Node] = []
        self.initializers: list[ir.Value] = []

    def supports(self, op_type: str, domain: str = "") -> bool:
        """True if the target computes the operator ``op_type``, so that it may be built."""
        if domain:
            return (domain, op_type) in self.extensions
        return self.kernels is None or op_type in self.kernels

    def op(
        self,
        op_type: str,
        *inputs: ir.Value | None,
        domain: str = "",
        name: str | None = None,
        **attributes: Attribute | None,
    ) -> ir.Value:
        """Build one node with one output and return the output; attributes that are None are
        omitted."""
        return self.ops(op_type, *inputs, outputs=1, domain=domain, name=name, **attributes)[0]

    def ops(
        self,
        op_type: str,
        *inputs: ir.Value | None,
        outputs: int,
        domain: str = "",
        name: str | None = None,
        **attributes: Attribute | None,
    ) -> tuple[ir.Value, ...]:
        """Build one node with ``outputs`` outputs and return them, with inferred dtypes and
        shapes."""
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        node = ir.Node(
            domain,
            op_type,
            inputs,
            _attributes(attributes),
            num_outputs=outputs,
            name=name,
        )
        return self.add(node)

    def like(self, node: ir.Node, *inputs: ir.Value | None) -> ir.Value:
        """Build a node with the operator and the attributes of ``node`` but other inputs."""
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        attributes = list(node.attributes.values())
        return self.add(ir.Node(node.domain, node.op_type, inputs, attributes))[0]

    def add(self, node: ir.Node) -> tuple[ir.Value, ...]:
        """Place ``node`` in the graph, name and infer its outputs, stamp its origin, return its
        outputs.

        Raises BeyondInt64 for attributes that no file can hold.
        """
        check_attributes(node)
        for value in node.outputs:
            if value.name is None:
                value.name = self.free_name("local" if self.in_function else "val")
        if self.before is None:
            self.graph.append(node)
        else:
            self.graph.insert_before(self.before, node)
        if node.domain and node.domain not in self.model.opset_imports:
            self.model.opset_imports[node.domain] = EXTENSION_VERSION
        self.created.append(node)
        if self.origin is not None:
            # A rewriter gives a function: most matches build nothing and need no origin.
            origin = self.origin() if callable(self.origin) else self.origin
            provenance.stamp(node, origin)
        self.shapes.infer_node(node)
        return tuple(node.outputs)

    def constant(self, array: np.ndarray | np.generic, name: str | None = None) -> ir.Value:
        """Return a constant that holds ``array``, which becomes read-only and is not copied.

        A builder with ``spills`` moves large arrays to a file: see ``constants_on_disk.py``.
        """
        array = np.asarray(array)
        if self.spills:
            array = spilled(array)
        array.flags.writeable = False
        return self.tensor(ir.Tensor(array), name)

    def tensor(self, tensor: ir.TensorProtocol, name: str | None = None) -> ir.Value:
        """Return a constant backed by ``tensor``, which may be lazy or external."""
        if self.in_function:
            return self.op("Constant", value=tensor, name=name)
        value = ir.Value(
            name=self.free_name(name or "const"),
            type=ir.TensorType(tensor.dtype),
            shape=ir.Shape(tensor.shape.numpy(), frozen=True),
            const_value=tensor,
        )
        self.graph.register_initializer(value)
        self.initializers.append(value)
        return value

    def const_like(self, number: float | bool, like: ir.Value) -> ir.Value:
        """Return a rank-0 constant in the dtype of ``like``, which must be known."""
        if like.dtype is None:
            raise ValueError(f"the dtype of {like.name!r} is unknown")
        return self.constant(np.asarray(number, dtype=like.dtype.numpy()))

    def const_i64(self, numbers: Sequence[int] | int) -> ir.Value:
        """Return an int64 constant: rank 0 for an int, rank 1 for a sequence."""
        return self.constant(int64_array(numbers))

    def cast(self, value: ir.Value, to: ir.DataType) -> ir.Value:
        """Return ``value`` cast to ``to``, or ``value`` itself if it has that dtype."""
        return value if value.dtype == to else self.op("Cast", value, to=int(to))

    def mean(self, x: ir.Value | None, axes: Sequence[int], *, keepdims: int = 1) -> ir.Value:
        """Return ReduceMean over ``axes``: an attribute before opset 18, an input from 18 on."""
        if self.model.opset_imports.get("", 1) < 18:
            return self.op("ReduceMean", x, axes=list(axes), keepdims=keepdims)
        return self.op("ReduceMean", x, self.const_i64(axes), keepdims=keepdims)

    def size(self, x: ir.Value, axis: int) -> ir.Value:
        """Return the size of ``axis`` of ``x`` as an int64 vector of one element; ``axis`` >= 0.

        From opset 15 on, ``Shape<start, end>`` computes it. Before, a Gather selects it.
        """
        if self.model.opset_imports.get("", 1) < 15:
            return self.op("Gather", self.op("Shape", x), self.const_i64([axis]))
        return self.op("Shape", x, start=axis, end=axis + 1)

    def branch(
        self, inputs: Sequence[tuple[ir.DataType, Sequence[int | None] | None]]
    ) -> tuple[Builder, list[ir.Value]]:
        """Return a builder for a new subgraph, and the subgraph's inputs of these dtypes and dims.

        Dims of None leave the rank open. No name in the subgraph hides a name of the graph around
        it.
        """
        values = [
            ir.Value(
                name=self.free_name("loop"),
                type=ir.TensorType(dtype),
                shape=None if dims is None else ir.Shape(dims),
            )
            for dtype, dims in inputs
        ]
        graph = ir.Graph(values, [], nodes=[], name=self.free_name("body"))
        return self.in_body(graph), values

    def in_body(self, graph: ir.Graph) -> Builder:
        """Return a builder that appends to ``graph``, the body of an If, Loop or Scan.

        In a function, ``graph`` is not attached yet, so that no walk from the function finds its
        names: it shares the table of used names.
        """
        if self.in_function:
            share_names(self._names(), graph)
        return Builder(
            self.model, graph, self.shapes, origin=self.origin, in_function=self.in_function
        )

    def input(self, stem: str, dtype: ir.DataType, shape: ir.Shape) -> ir.Value:
        """Append a new input to the graph and return it; its name is ``stem`` or derived from
        it."""
        value = ir.Value(name=self.free_name(stem), type=ir.TensorType(dtype), shape=shape)
        self.graph.inputs.append(value)
        return value

    def discard(self) -> None:
        """Remove every node and constant made by this builder; nothing outside may read them."""
        if not self.created and not self.initializers:
            return
        for node in reversed(self.created):
            for reader in (node, *scope.nested_nodes(node)):
                detach(reader)
        self.graph.remove(self.created)
        for value in self.initializers:
            if value.name is not None:
                self.graph.initializers.pop(value.name, None)
        self.created.clear()
        self.initializers.clear()

    def free_name(self, stem: str) -> str:
        """Return ``stem``, or a name derived from it, that no value of the model has.

        Inner graphs count too: a name repeated in an inner graph would hide the outer value. A
        function body has names of its own.
        """
        return self._names().free(stem)

    def _names(self) -> Names:
        """Return the names that new values must not have."""
        return names_below(self.graph) if self.in_function else names_of(self.model)


def _attributes(attributes: dict[str, Attribute | None]) -> list[ir.Attr]:
    """Return ``attributes`` as attributes of a node, without None."""
    return [_attribute(name, value) for name, value in attributes.items() if value is not None]


def _attribute(name: str, value: Attribute) -> ir.Attr:
    """Return one attribute of a node."""
    # The library asks a sequence whether it is a graph or a tensor, by protocol, at great cost.
    if isinstance(value, tuple | list) and value and all(isinstance(item, int) for item in value):
        return ir.AttrInt64s(name, value)
    if isinstance(value, ir.Tensor):
        return ir.AttrTensor(name, value)
    return ir.convenience.convert_attribute(name, value)
