"""Symbolic shape and dtype inference, one node or a whole model at a time.

Wraps onnx-shape-inference, which works on the IR in place: 15 microseconds per node, with symbolic
arithmetic. Inferred facts override what a model declares for inner values, because a declaration
may be wrong; where nothing is inferred the declaration stays. smelt's own rules replace library
rules that guess (``shape_rules.py``, ``broadcast.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import onnx_ir as ir
from onnx_shape_inference import OpUsageError, ShapeInferenceError

from smelt.errors import InvalidModel
from smelt.ir import scope
from smelt.ir.same_shape import Dim
from smelt.ir.shapes.broadcast import register_sound_broadcasting
from smelt.ir.shapes.contradiction import contradiction
from smelt.ir.shapes.declared import note_declared, note_ranks, restore_ranks
from smelt.ir.shapes.inferred_facts import KnownFacts, forget, forget_noted_elements
from smelt.ir.shapes.loop_states import forget_varying, forget_varying_bodies, is_open, varying_dims
from smelt.ir.shapes.ruled_out import forget_ruled_out, rule_out
from smelt.ir.shapes.shape_context import ShapeContext
from smelt.ir.shapes.shape_registry import ShapeRule, infer_everything, registry, take_over
from smelt.ir.shapes.shape_rules import check_results, contain_failures, register_own_rules
from smelt.ir.shapes.tracked_elements import check_elements
from smelt.ir.symbolic_dims.dims import symbols_of
from smelt.ir.symbolic_dims.invented_dims import (
    every_value,
    invented_in,
    invented_names,
    is_invented,
    without_invented,
)
from smelt.spans import span


@cache
def _prepare_registry() -> None:
    """Register smelt's rules over the library's, once."""
    take_over()
    contain_failures()
    register_own_rules()
    register_sound_broadcasting()
    check_results()


UNKNOWN_RANK = 100
"""Weight of a value of unknown rank, compared with one unknown dim."""


class ShapeInference:
    """Shape inference for one model, kept current while the model is edited.

    One instance serves a whole compile, so that the symbols that it invents (``_d0``, ``_d1``, ...)
    stay unique. Unnamed dims of inputs get such symbols; ``restore_interface`` removes them.
    """

    def __init__(self, model: ir.Model) -> None:
        _prepare_registry()
        self.model = model
        self._inputs: list[ir.Shape | None] = []
        self._outputs: list[ir.Shape | None] = []
        self.redeclare_interface()
        self._context = ShapeContext(model.opset_imports, policy="refine")
        self._names_are_reserved = False
        self._input_names: set[str] | None = None
        self._output_names: set[str] = set()
        self._model_names: set[str] = set()
        self._is_flat = False
        self._rules: dict[tuple[str, str], ShapeRule | None] = {}

    def infer_node(self, node: ir.Node) -> None:
        """Set the dtypes and shapes of the outputs of ``node`` from its inputs.

        Outputs of operators without a rule, and of nodes on which the rule fails, stay unknown.
        """
        infer = self._rule(node)
        if infer is None:
            return
        if not self._names_are_reserved:
            self._reserve()
        for value in node.inputs:
            if value is not None:
                self._context.name_anonymous_dims(value)
        try:
            infer(self._context, node)
        except (OpUsageError, ShapeInferenceError):
            return

    def _rule(self, node: ir.Node) -> ShapeRule | None:
        """Return the shape rule for ``node``, cached by operator; None if there is none."""
        key = node.domain, node.op_type
        if key not in self._rules:
            version = self._context.get_opset_version(node.domain)
            self._rules[key] = registry.get(*key, version=version)
        return self._rules[key]

    def infer_model(self) -> None:
        """Infer every value of the model, subgraphs and functions included.

        Raises InvalidModel E317 if shapes contradict each other. Models with the batched Scan of
        opset 8 are left alone: the library would infer wrong shapes for its body.
        """
        if self._context.opset < 9 and any(n.op_type == "Scan" for n in scope.nodes(self.model)):
            return
        self._reserve()
        forget_ruled_out(self.model)
        self._forget_names_of_results([self.model.graph])
        try:
            with span("shapes"):
                self._is_flat = self._infer_flat()
                if not self._is_flat:
                    self._infer_nested()
        except OpUsageError as error:
            raise contradiction(error.node, error.message) from error
        except ShapeInferenceError as error:
            at = f"node {error.node_name!r} ({error.op_type})"
            why = error.message
            raise InvalidModel(
                "E317",
                "shapes contradict each other",
                at=at,
                why=why,
                fix="correct the declared shape, or remove it: smelt infers it",
            ) from error

    def _forget_names_of_results(self, graphs: Iterable[ir.Graph]) -> None:
        """Remove names of output dims in ``graphs`` that no input dim has.

        Exporters name them ``Concat_12_dim_0``, and an inferred size would not replace such a name.
        The names in inputs of bodies are removed too: their shapes come from the operands of the
        node.
        """
        inputs = set(self.model.graph.inputs)
        input_symbols = {
            symbol
            for value in self.model.graph.inputs
            for dim in value.shape or ()
            for symbol in symbols_of(dim)
        }
        for value in (value for graph in graphs for value in (*graph.inputs, *graph.outputs)):
            if value.shape is None or value in inputs:
                continue
            dims = [d if symbols_of(d) <= input_symbols else None for d in value.shape.dims]
            if None in dims:
                value.shape = ir.Shape(dims)

    def infer_again(self, loops: Iterable[ir.Node]) -> bool:
        """Infer the model again if edits may have revealed more; return True if more is known now.

        Two things may have changed. A loop of ``loops`` may now be proved to keep the shapes of its
        states. And two invented names may have become one, if their values were merged.
        """
        names = self._model_names | self._context.generated_dim_names
        if self._is_flat and len(names) < 2:
            return False
        before = self._unknown_and_invented()
        if before[1] < 2 and not any(map(is_open, loops)):
            return False
        self.infer_model()
        return self._unknown_and_invented() < before

    def _unknown_and_invented(self) -> tuple[int, int]:
        """Return the weight of unknown dims and ranks, and the number of invented names: a smaller
        pair if more is known."""
        shapes = [v.shape for node in scope.nodes(self.model) for v in node.outputs]
        dims = [d for shape in shapes if shape is not None for d in shape.dims]
        names = [d.value for d in dims if not isinstance(d, int)]
        invented = [name for name in names if name is not None and is_invented(name)]
        unknown = names.count(None) + len(invented) + UNKNOWN_RANK * shapes.count(None)
        return unknown, len({part for name in invented for part in invented_in(name)})

    def _infer_nested(self) -> None:
        """Infer a model with subgraphs or functions.

        At first, each loop state is assumed to keep its initial shape. As long as a body shows that
        more dims vary between iterations, the model is inferred again from the facts before the
        first round. Facts that follow from a wrong assumption may be wrong outside of loops, too.
        """
        note_ranks(self.model)
        self._forget_names_of_results(scope.graphs(self.model))
        forget_varying(self.model)
        known = KnownFacts(every_value(self.model))
        varying_before, varying = -1, varying_dims(self.model)
        while varying != varying_before:
            varying_before = varying
            self._context.forget_symbolic_values()
            known.restore()
            forget_varying_bodies(self._context, self.model)
            forget_ruled_out(self.model)
            self._infer_possible()
            varying = varying_dims(self.model)
        self._names_are_reserved = False

    def _infer_possible(self) -> None:
        """Infer everything; a node that fails for the given sizes is noted if a run may skip it."""
        while True:
            try:
                infer_everything(self.model)
                return
            except OpUsageError as error:
                if not rule_out(self.model, error.node, error.message):
                    raise

    def _infer_flat(self) -> bool:
        """Infer a model without subgraphs and functions, at half the cost of the library's walk;
        False if a node needs more than its rule, for which ``_infer_nested`` infers the model."""
        if self.model.functions:
            return False
        context, imports = self._context, self.model.opset_imports
        graph = self.model.graph
        for value in graph.inputs:
            context.name_anonymous_dims(value)
        for value in graph.initializers.values():
            # The declared shape of a weight may be wrong; the shape of the tensor is right.
            if value.const_value is not None and value.shape != value.const_value.shape:
                value.shape = ir.Shape(value.const_value.shape.numpy())
        context.policy = "override"
        try:
            for node in graph:
                if node.op_type in scope.GRAPH_CARRIERS:
                    return False
                infer = registry.get(node.domain, node.op_type, version=imports.get(node.domain, 1))
                if infer is None or (node.domain and scope.subgraphs(node)):
                    return False
                infer(context, node)
        finally:
            context.policy = "refine"
        return True

    def elements(self, value: ir.Value) -> list[Dim] | None:
        """Return the elements of ``value``, an integer vector or scalar such as a computed shape,
        as numbers or expressions of dims; None if unknown."""
        known: list[Dim] | None = self._context.get_symbolic_value(value)
        return known

    def note_elements(self, value: ir.Value, elements: list[Dim]) -> None:
        """Note that ``value``, an integer vector or scalar, holds ``elements``."""
        self._context.set_symbolic_value(value, elements)
        check_elements(self._context, value)

    def learn(self, value: ir.Value, shape: ir.Shape | None, dtype: ir.DataType | None) -> None:
        """Add ``shape`` and ``dtype`` to the facts about ``value``; better-known facts stay."""
        if shape is not None:
            shape = self._context.name_anonymous_dims_in_shape(shape)
        self._context.set_shape_and_dtype(value, shape, dtype)

    def forget(self, value: ir.Value) -> None:
        """Erase the inferred shape and elements of ``value``."""
        forget(self._context, value)

    def redeclare_interface(self) -> None:
        """Take the current shapes of inputs and outputs as their declared shapes."""
        self._inputs = [value.shape for value in self.model.graph.inputs]
        self._outputs = [value.shape for value in self.model.graph.outputs]
        note_declared(self.model.graph)

    def restore_interface(self) -> None:
        """Give inputs and outputs of the model their declared shapes.

        Also removes traces of this inference: tracked elements in the metadata, and invented names.
        """
        graph = self.model.graph
        if not self._is_flat:
            restore_ranks(self.model)
        input_names = self._input_names or set()
        for value in every_value(self.model):
            forget_noted_elements(value)
            if value.shape is not None:
                known = without_invented(value.shape, input_names)
                if known is not value.shape:
                    value.shape = known
        for value, shape in zip(graph.inputs, self._inputs, strict=True):
            value.shape = shape and without_invented(shape, input_names)
        for value, shape in zip(graph.outputs, self._outputs, strict=True):
            if shape is not None:
                value.shape = without_invented(shape, input_names | self._output_names)

    def _reserve(self) -> None:
        """Make sure that inference invents no name that the model has from an earlier inference."""
        self._names_are_reserved = True
        if self._input_names is None:
            self._input_names = invented_names(self.model.graph.inputs)
            self._output_names = invented_names(self.model.graph.outputs)
        self._model_names = invented_names(every_value(self.model))
        self._context.reserve_symbol_names(self._model_names)


def infer_within(model: ir.Model) -> None:
    """Infer the types of all values of ``model``; invented names of dims are removed."""
    shapes = ShapeInference(model)
    try:
        shapes.infer_model()
    finally:
        shapes.restore_interface()
