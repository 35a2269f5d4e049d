"""The context of a lowering: the current equation, and methods that add nodes for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.errors import InternalError, Unsupported
from smelt.frontends.jax import compat, registry
from smelt.frontends.jax.compat import Aval, Dim
from smelt.frontends.jax.dims import sizes_agree
from smelt.frontends.jax.interpreter import interpret, jaxpr_and_constants
from smelt.frontends.jax.nodes import Nodes, Shared
from smelt.frontends.jax.operand import Operand, adds_first_ones, broadcast_shapes
from smelt.frontends.jax.source_lines import Call
from smelt.ir.build import Builder
from smelt.ir.same_shape import is_positive


class Lowering(Nodes):
    """Adds nodes to one graph, for one equation at a time.

    ``avals_in`` and ``avals_out`` are the JAX types of operands and results. ``operands`` holds the
    operands; a lowering registered with ``broadcasts=True`` gets them before their broadcast. A
    lowering returns one value per result.
    """

    avals_in: tuple[Aval, ...]
    avals_out: tuple[Aval, ...]
    operands: tuple[Operand, ...]
    equation: compat.Equation

    def __init__(self, builder: Builder, shared: Shared, call: Call | None = None) -> None:
        super().__init__(builder, shared)
        self.call = call or Call()
        self._broadcast: dict[tuple[ir.Value, tuple[Dim, ...]], ir.Value] = {}

    # -- operands ----------------------------------------------------------------------------

    def broadcast_operand(self, operand: Operand, atom: compat.Atom) -> Operand:
        """Return ``operand`` broadcast to the full shape of ``atom``."""
        shape = tuple(atom.aval.shape)
        if operand.shape == shape:
            return operand
        return Operand(self.broadcast(operand, atom.aval), shape)

    def broadcast(self, operand: Operand, aval: Aval) -> ir.Value:
        """Return the value of ``operand`` broadcast to the shape of ``aval``.

        Equal broadcasts of one graph share a node.
        """
        shape = tuple(aval.shape)
        if operand.shape == shape:
            return operand.value
        cached = self._broadcast.get((operand.value, shape))
        if cached is not None:
            return cached
        if adds_first_ones(operand.shape, shape):
            value = self.unsqueeze(operand.value, range(len(shape) - len(operand.shape)))
        else:
            value = self.expand(operand.value, shape)
        self.set_type(Operand(value, shape), aval, "broadcast_in_dim")
        self._broadcast[operand.value, shape] = value
        return value

    # -- a jaxpr -----------------------------------------------------------------------------

    def run(
        self, jaxpr: compat.Jaxpr, constants: Sequence[object], operands: Sequence[Operand]
    ) -> list[Operand]:
        """Lower the equations of ``jaxpr`` into the graph, and return its results."""
        pairs = zip(jaxpr.constvars, constants, strict=True)
        constant_operands = [self.captured(constant, variable.aval) for variable, constant in pairs]
        return interpret(jaxpr, constant_operands, operands, self._literal, self._lowered)

    def _literal(self, literal: compat.Literal) -> Operand:
        """Return the constant of a literal."""
        return self.captured(literal.val, literal.aval)

    def _lowered(self, equation: compat.Equation, inputs: list[Operand]) -> list[Operand]:
        """Return the results of one equation by its registered lowering."""
        rule = registry.find(equation.primitive.name)
        if rule is None:
            raise InternalError("E910", f"primitive {equation.primitive.name!r} was not checked")
        with self.at(equation, inputs):
            if not rule.broadcasts:
                pairs = zip(inputs, equation.invars, strict=True)
                self.operands = tuple(
                    self.broadcast_operand(operand, atom) for operand, atom in pairs
                )
            values = (operand.value for operand in self.operands)
            results = rule.function(self, *values, **equation.params)
            return self._as_operands(results, inputs if rule.broadcasts else None)

    def _as_operands(self, results: object, broadcast: Sequence[Operand] | None) -> list[Operand]:
        """Return the results of a lowering as operands, checked against the JAX types.

        ``broadcast`` are the inputs if the lowering got them before their broadcast. A result then
        has the broadcast of their shapes, which may be smaller than JAX's. Raises InternalError
        E910 if a result is missing or has another dtype, rank or static size.
        """
        name = self.equation.primitive.name
        result_list = list(results) if isinstance(results, list | tuple) else [results]
        if len(result_list) != len(self.avals_out):
            what = f"the lowering of {name!r} gave {len(result_list)} results"
            raise InternalError("E910", f"{what} for {len(self.avals_out)} outputs")
        outputs = []
        for result, aval in zip(result_list, self.avals_out, strict=True):
            if isinstance(result, ir.Value):
                shape = tuple(aval.shape)
                if broadcast is not None:
                    shape = broadcast_shapes([operand.shape for operand in broadcast])
                result = Operand(result, shape)  # noqa: PLW2901 - a result becomes an operand
            if not isinstance(result, Operand):
                what = f"the lowering of {name!r} gave a {type(result).__name__}"
                raise InternalError("E910", what)
            self.set_type(result, aval, name)
            outputs.append(result)
        return outputs

    # -- calls and subgraphs -----------------------------------------------------------------

    def inline(
        self, body: compat.ClosedJaxpr | compat.Jaxpr, operands: Sequence[Operand], name: str = ""
    ) -> list[Operand]:
        """Lower ``body`` in place; the provenance of its nodes keeps ``name``."""
        jaxpr, constants = jaxpr_and_constants(body)
        outer = self.call
        self.call = outer.inner(self.equation, jaxpr, name)
        try:
            return self.run(jaxpr, constants, operands)
        finally:
            self.call = outer

    def inline_traced(self, fn: Callable[..., Any]) -> list[Operand]:
        """Trace ``fn`` for the equation's operands, and lower its jaxpr in place."""
        structs = tuple(compat.struct(tuple(a.shape), a.dtype) for a in self.avals_in)
        return self.inline(compat.make_jaxpr(fn, structs)[0], self.operands)

    def branch(self, inputs: Sequence[ir.Value] = (), name: str = "body") -> Lowering:
        """Return a Lowering for a new subgraph with ``inputs``, for the same equation."""
        graph = ir.Graph(list(inputs), [], nodes=[], name=self.fresh(name))
        inner = Lowering(self.builder.in_body(graph), self.shared, self.call)
        if "equation" in vars(self):
            inner.equation = self.equation
        return inner

    def finish(self, outputs: Sequence[tuple[ir.Value, Aval]]) -> ir.Graph:
        """Return the subgraph of this Lowering with ``outputs``.

        ONNX needs distinct outputs that nodes of the subgraph compute. Others get an Identity.
        """
        graph = self.builder.graph
        for value, aval in outputs:
            producer = value.producer()
            if producer is None or producer.graph is not graph or value.is_graph_output():
                value = self.op("Identity", value)  # noqa: PLW2901
                self.set_type(Operand(value, tuple(aval.shape)), aval, "body")
            graph.outputs.append(value)
        return graph

    def captured(self, constant: object, aval: Aval) -> Operand:
        """Return a constant or literal of a jaxpr in the dtype of ``aval``.

        Large arrays are not copied.
        """
        return Operand(self.pool.captured(constant, aval), tuple(aval.shape))

    # -- the equation ------------------------------------------------------------------------

    @contextmanager
    def at(self, equation: compat.Equation, operands: Sequence[Operand]) -> Iterator[None]:
        """Make ``equation`` the current one within the ``with`` block; inlined equations nest.

        Nodes that the block adds get the equation's source line.
        """
        outer_equation, outer_operands = (vars(self).get(name) for name in ("equation", "operands"))
        outer_origin = self.builder.origin
        self._set_equation(equation, operands)
        self.builder.origin = self.shared.builder.origin = partial(self.call.origin, equation)
        try:
            yield
        finally:
            self.builder.origin = self.shared.builder.origin = outer_origin
            if outer_equation is not None:
                self._set_equation(outer_equation, outer_operands or ())

    def _set_equation(self, equation: compat.Equation, operands: Sequence[Operand]) -> None:
        """Set the equation, its operands, and the types of operands and results."""
        self.equation = equation
        self.operands = tuple(operands)
        self.avals_in = tuple(atom.aval for atom in equation.invars)
        self.avals_out = tuple(variable.aval for variable in equation.outvars)

    def set_type(self, operand: Operand, aval: Aval, name: str) -> None:
        """Give the value of ``operand`` the JAX type ``aval`` and the operand's shape.

        ``name`` is the primitive that computed it. Raises InternalError E910 if shape inference
        found another dtype, rank or static size.
        """
        value, dims = operand.value, self.symbols.shape(operand.shape)
        dtype = ir.DataType.from_numpy(np.dtype(aval.dtype))
        if value.dtype is not None and value.dtype != dtype:
            what = f"the lowering of {name!r} gave {value.dtype}, and JAX expects {dtype}"
            raise InternalError("E910", what, at=self.call.place(self.equation))
        if value.shape is not None and not sizes_agree(value.shape, dims):
            what = f"the lowering of {name!r} gave shape {value.shape}, and JAX expects {dims}"
            raise InternalError("E910", what, at=self.call.place(self.equation))
        if value.producer() is None:
            return
        if value.dtype is None:
            value.type = ir.TensorType(dtype)
        if value.shape is None or value.shape.dims != dims.dims:
            value.shape = dims

    def is_never_empty(self) -> bool:
        """True if no operand can have a size of 0, which some operators reject."""
        dims = (dim for aval in self.avals_in for dim in aval.shape)
        return all(is_positive(self.symbols.dim(dim)) for dim in dims)

    def unsupported(self, why: str, fix: str = "") -> Unsupported:
        """Return the error E102 for this equation; ``why`` names the unsupported parameter."""
        return Unsupported(
            "E102",
            f"this use of primitive {self.equation.primitive.name!r} is not supported",
            at=self.call.place(self.equation),
            why=why,
            fix=fix or "rewrite the call, or compute it outside the traced function",
        )
