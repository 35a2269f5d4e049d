"""Change chosen float32 nodes to a half type in place, with one Cast per value at each border.

A node in half writes half values. A node in float32 reads such a value through a Cast, which stands
behind the producer and serves all its readers in float32, also in subgraphs. Constants that only
half nodes read are stored in half.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from smelt.ir import provenance, scope
from smelt.ir.constants import Constants
from smelt.ir.floats import float_info
from smelt.ir.names import names_below, names_of
from smelt.ir.onnx_ir_private import replace_one_input
from smelt.ir.tensors.constants_on_disk import spilled
from smelt.passes.precision.half_places import WIDE, Places

AGNOSTIC = frozenset({"Cast", "Shape", "Size"})
"""Operators that read any element type, and whose results do not depend on it."""


def retype(
    model: ir.Model,
    places: Mapping[ir.Node, Places],
    half: ir.DataType,
    constants: Constants,
    *,
    half_interface: bool = False,
) -> list[ir.Node]:
    """Compute the nodes of ``places`` in ``half``; return the new Casts.

    ``places`` has the indexes of inputs and outputs that change their type. Casts from integers may
    be among them. With ``half_interface``, float32 inputs and outputs of the model become ``half``.
    """
    work = _Retyping(model, places, half, constants)
    if half_interface:
        for value in model.graph.inputs:
            if value.dtype == WIDE and isinstance(value.type, ir.TensorType):
                work.narrow(value)
    for node, (_, outputs) in places.items():
        for index in outputs:
            work.narrow(node.outputs[index])
        _set_types(node, half)
    for graph in list(scope.graphs(model)):
        for node in list(graph):
            work.fit_inputs(node)
        work.fit_outputs(graph, half_interface=half_interface and graph is model.graph)
    work.remove_unread()
    return work.casts


def _set_types(node: ir.Node, half: ir.DataType) -> None:
    """Let a Cast return ``half``, and an Attention compute its softmax in float32."""
    if node.op_type == "Cast":
        node.attributes["to"] = ir.AttrInt64("to", int(half))
    elif node.op_type == "Attention" and "softmax_precision" not in node.attributes:
        node.attributes["softmax_precision"] = ir.AttrInt64("softmax_precision", int(WIDE))


class _Retyping:
    """The state of one call of ``retype``: counterparts of values in the other type."""

    def __init__(
        self,
        model: ir.Model,
        places: Mapping[ir.Node, Places],
        half: ir.DataType,
        constants: Constants,
    ) -> None:
        """Begin without counterparts; ``narrowed`` has the values that became half."""
        self.model, self.places, self.half, self.constants = model, places, half, constants
        self.narrowed: set[ir.Value] = set()
        self.counterparts: dict[ir.Value, ir.Value] = {}
        self.replaced: dict[ir.Value, None] = {}
        self.casts: list[ir.Node] = []
        functions = (function.graph for function in model.functions.values())
        self.in_functions = {g for root in functions for g in scope.graphs_below(root)}

    def narrow(self, value: ir.Value) -> None:
        """Give ``value`` the half type."""
        value.type = ir.TensorType(self.half)
        self.narrowed.add(value)
        if value.const_value is not None:  # the default of an input
            value.const_value = self._tensor(value, value.const_value.numpy())

    def fit_inputs(self, node: ir.Node) -> None:
        """Let each float operand of ``node`` have the type in which the node computes."""
        in_half = self.places[node][0] if node in self.places else ()
        for index, value in enumerate(node.inputs):
            if value is None:
                continue
            if index in in_half and value.dtype == WIDE:
                replace_one_input(node, index, self._in_half(value))
                continue
            is_agnostic = not node.domain and node.op_type in AGNOSTIC
            if index not in in_half and value in self.narrowed and not is_agnostic:
                replace_one_input(node, index, self._in_float(value))

    def fit_outputs(self, graph: ir.Graph, *, half_interface: bool) -> None:
        """Let the outputs of ``graph`` keep their types, or be half with ``half_interface``.

        A Cast takes over the name of an output of the model.
        """
        casts: dict[ir.Value, ir.Value] = {}
        for index, value in enumerate(list(graph.outputs)):
            if half_interface and value.dtype == WIDE and isinstance(value.type, ir.TensorType):
                other = casts.get(value) or self._cast(value, self.half)
            elif not half_interface and value in self.narrowed:
                other = self._in_float(value)
            else:
                continue
            if graph is self.model.graph and value not in casts and not value.is_graph_input():
                value.name, other.name = other.name, value.name
            casts[value] = other
            graph.outputs[index] = other

    def remove_unread(self) -> None:
        """Remove constants and casts that nobody reads any more.

        The half copy of a removed weight takes over its name.
        """
        for value in self.replaced:
            node = value.producer()
            if value.uses() or value.is_graph_output() or value.is_graph_input():
                continue
            if node is None:
                self._remove_initializer(value)
            elif len(node.outputs) == 1 and node.graph is not None:
                node.graph.remove(node, safe=True)

    def _remove_initializer(self, value: ir.Value) -> None:
        """Remove the constant ``value``; its counterpart gets its name."""
        graph, name, copy = value.graph, value.name, self.counterparts[value]
        if graph is None or name is None or graph.initializers.pop(name, None) is None:
            return
        if copy.name is not None and graph.initializers.pop(copy.name, None) is copy:
            copy.name = name
            graph.register_initializer(copy)

    def _in_half(self, value: ir.Value) -> ir.Value:
        """Return the half counterpart of the float32 ``value``: a constant, a source or a Cast."""
        known = self.counterparts.get(value)
        if known is None:
            known = self._narrow_source(value) or self._half_constant(value)
            known = known or self._cast(value, self.half)
            self.counterparts[value] = known
        self.replaced[value] = None
        return known

    def _in_float(self, value: ir.Value) -> ir.Value:
        """Return the float32 counterpart of the half ``value``."""
        if value not in self.counterparts:
            self.counterparts[value] = self._cast(value, WIDE)
        return self.counterparts[value]

    def _narrow_source(self, value: ir.Value) -> ir.Value | None:
        """Return the half operand of the Cast to float32 that computes ``value``, if it is one."""
        node = value.producer()
        if node is None or node.op_type != "Cast" or node.domain or node.inputs[0] is None:
            return None
        return node.inputs[0] if node.inputs[0].dtype == self.half else None

    def _half_constant(self, value: ir.Value) -> ir.Value | None:
        """Return a constant with the rounded numbers of ``value``; None if it is no constant."""
        array = self.constants.get(value, limit=None)
        if array is None or value.is_graph_input():
            return None
        tensor = self._tensor(value, array)
        graph = value.graph
        assert graph is not None
        name = self._free_name(graph, value.name or "const")
        if graph in self.in_functions:
            node = ir.Node("", "Constant", [], [ir.AttrTensor("value", tensor)], num_outputs=1)
            graph.insert_before(next(iter(graph)), node)
            constant = node.outputs[0]
            constant.name = name
        else:
            constant = ir.Value(name=name, const_value=tensor)
            graph.register_initializer(constant)
        constant.type, constant.shape = ir.TensorType(self.half), ir.Shape(array.shape)
        return constant

    def _tensor(self, value: ir.Value, array: np.ndarray) -> ir.Tensor:
        """Return the numbers of ``array`` in half, as a tensor named like ``value``."""
        rounded = spilled(rounded_to(array, self.half))
        rounded.flags.writeable = False
        return ir.Tensor(rounded, dtype=self.half, name=value.name)

    def _cast(self, value: ir.Value, to: ir.DataType) -> ir.Value:
        """Return ``value`` cast to ``to``, by a node behind its producer."""
        node = ir.Node("", "Cast", [value], [ir.AttrInt64("to", int(to))], num_outputs=1)
        graph, producer = value.graph, value.producer()
        assert graph is not None
        first = next(iter(graph), None)
        if producer is not None:
            graph.insert_after(producer, node)
            provenance.stamp(node, provenance.merge([producer], "cast"))
        elif first is not None:
            graph.insert_before(first, node)
        else:
            graph.append(node)
        (result,) = node.outputs
        result.name = self._free_name(graph, f"{value.name}_{to.name.lower()}")
        result.type, result.shape = ir.TensorType(to), value.shape
        self.casts.append(node)
        return result

    def _free_name(self, graph: ir.Graph, stem: str) -> str:
        """Return a name that no value has."""
        names = names_below(graph) if graph in self.in_functions else names_of(self.model)
        return names.free(stem)


def rounded_to(array: np.ndarray, half: ir.DataType) -> np.ndarray:
    """Return ``array`` in the half type; a number that would round to 0 becomes the smallest."""
    with np.errstate(over="ignore"):
        narrow = np.asarray(array.astype(half.numpy()))
    vanished = (narrow == 0) & (array != 0)
    if vanished.any():
        smallest = float(float_info(half.numpy()).smallest_subnormal)
        signed = np.copysign(smallest, array).astype(half.numpy())
        narrow = np.where(vanished, signed, narrow)
    return narrow
