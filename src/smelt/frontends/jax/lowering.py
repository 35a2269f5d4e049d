"""What a lowering sees: the equation, and the means to make nodes for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.errors import InternalError, Unsupported
from smelt.frontends.jax import compat, engine
from smelt.frontends.jax.compat import Aval, Dim, is_symbolic
from smelt.frontends.jax.constants import ConstantPool
from smelt.frontends.jax.dims import fits, reshape_numbers
from smelt.frontends.jax.element_types import refusal
from smelt.frontends.jax.functions.library import Library
from smelt.frontends.jax.interpreter import opened
from smelt.frontends.jax.operand import Operand, adds_first_ones
from smelt.frontends.jax.places import Call
from smelt.frontends.jax.symbols import Symbols
from smelt.ir.build import Attribute, Builder


class Lowering:
    """Makes nodes in one graph, for one equation at a time.

    ``avals_in`` and ``avals_out`` are the types that JAX gives to the operands and results of the
    equation; ``operands`` the operands themselves, of which lowerings registered with
    ``broadcasts=True`` may find some not yet broadcast. A lowering returns one value per result.
    """

    avals_in: tuple[Aval, ...]
    avals_out: tuple[Aval, ...]
    operands: tuple[Operand, ...]
    equation: compat.Equation

    def __init__(
        self,
        builder: Builder,
        main: Lowering | None = None,
        call: Call | None = None,
    ) -> None:
        self.builder = builder
        self.main = main or self
        self.call = call or Call()
        self._count = 0
        self._broadcast: dict[tuple[ir.Value, tuple[Dim, ...]], ir.Value] = {}
        if main is None:
            self.symbols = Symbols(builder)
            self.pool = ConstantPool(builder)
            self.functions = Library()
        else:
            self.symbols = main.symbols
            self.pool = main.pool
            self.functions = main.functions

    # -- nodes -------------------------------------------------------------------------------

    def op(
        self,
        op_type: str,
        *inputs: ir.Value | None,
        domain: str = "",
        **attributes: Attribute | None,
    ) -> ir.Value:
        """One node with one output, its type inferred; attributes that are None are left out."""
        self._check_types(op_type, inputs, domain)
        return self.builder.op(op_type, *inputs, domain=domain, name=None, **attributes)

    def ops(
        self,
        op_type: str,
        *inputs: ir.Value | None,
        outputs: int,
        **attributes: Attribute | None,
    ) -> tuple[ir.Value, ...]:
        """One node with several outputs."""
        self._check_types(op_type, inputs)
        return self.builder.ops(
            op_type, *inputs, outputs=outputs, domain="", name=None, **attributes
        )

    def _check_types(
        self, op_type: str, inputs: Sequence[ir.Value | None], domain: str = ""
    ) -> None:
        why = "" if domain else refusal(op_type, inputs, self.opset)
        if why:
            fix = "compute in float16 or wider, and convert what comes out"
            raise self.unsupported(why, fix)

    def constant(self, array: np.ndarray | np.generic) -> ir.Value:
        """A constant; equal small ones are one."""
        return self.pool.constant(np.asarray(array))

    def const_i64(self, numbers: Sequence[int] | int) -> ir.Value:
        """An int64 constant: rank 0 for an int, rank 1 for a sequence."""
        return self.constant(np.asarray(numbers, dtype=np.int64))

    def const_like(self, number: float | bool, like: ir.Value) -> ir.Value:
        """A rank-0 constant in the dtype of ``like``."""
        assert like.dtype is not None
        return self.constant(np.asarray(number, dtype=like.dtype.numpy()))

    def cast(self, x: ir.Value, dtype: np.dtype | ir.DataType) -> ir.Value:
        """``x`` in another element type, as ONNX casts."""
        to = dtype if isinstance(dtype, ir.DataType) else ir.DataType.from_numpy(np.dtype(dtype))
        return x if x.dtype == to else self.op("Cast", x, to=int(to))

    # -- movement ----------------------------------------------------------------------------

    def transpose(self, x: ir.Value, perm: Sequence[int]) -> ir.Value:
        """``x`` with its dims in the order ``perm``."""
        order = [int(dim) for dim in perm]
        return x if order == list(range(len(order))) else self.op("Transpose", x, perm=order)

    def unsqueeze(self, x: ir.Value, axes: Sequence[int]) -> ir.Value:
        """``x`` with dims of size 1 inserted, so that they are at ``axes`` of the result."""
        return self.op("Unsqueeze", x, self.const_i64(list(axes))) if len(axes) else x

    def squeeze(self, x: ir.Value, axes: Sequence[int]) -> ir.Value:
        """``x`` without the dims ``axes``, which are of size 1."""
        return self.op("Squeeze", x, self.const_i64(list(axes))) if len(axes) else x

    def slice(
        self,
        x: ir.Value,
        starts: Sequence[Dim],
        ends: Sequence[Dim],
        axes: Sequence[int],
        steps: Sequence[int] | None = None,
    ) -> ir.Value:
        """``x[starts:ends:steps]`` on ``axes``; sizes may be symbolic."""
        if not len(axes):
            return x
        bounds = [self.shape_value(starts), self.shape_value(ends), self.const_i64(list(axes))]
        if steps is not None and any(step != 1 for step in steps):
            bounds.append(self.const_i64(list(steps)))
        return self.op("Slice", x, *bounds)

    def reshape(self, x: ir.Value, shape: Sequence[Dim]) -> ir.Value:
        """``x`` in ``shape``: by a constant wherever one unknown or copied dims can say it."""
        target = [self.symbols.dim(dim) for dim in shape]
        numbers = None if 0 in target else reshape_numbers(x.shape, target)
        if numbers is not None:
            return self.op("Reshape", x, self.const_i64(numbers))
        # A literal 0 must mean size 0 here, not "as before".
        return self.op("Reshape", x, self.shape_value(shape), allowzero=int(0 in target) or None)

    def expand(self, x: ir.Value, shape: Sequence[Dim]) -> ir.Value:
        """``x`` broadcast to ``shape`` by the rules of NumPy."""
        return self.op("Expand", x, self.shape_value(shape))

    def pinned(self, x: ir.Value, shape: Sequence[Dim]) -> ir.Value:
        """``x``, whose shape is ``shape``, with every size that is a number known to inference.

        A Reshape says those that it cannot see: what later passes infer of slices at computed
        places would be less than what JAX knows.
        """
        dims = [self.symbols.dim(dim) for dim in shape]
        known = x.shape if x.shape is not None and len(x.shape) == len(dims) else [None] * len(dims)
        pairs = list(zip(known, dims, strict=True))
        if all(before == dim or not isinstance(dim, int) for before, dim in pairs) or 0 in dims:
            return x
        # A 0 keeps a dim as it is.
        numbers = [dim if isinstance(dim, int) else 0 for dim in dims]
        return self.op("Reshape", x, self.const_i64(numbers))

    def full(self, operand: Operand, atom: compat.Atom) -> Operand:
        """``operand`` in the whole shape of ``atom``."""
        shape = tuple(atom.aval.shape)
        if operand.shape == shape:
            return operand
        return Operand(self.whole(operand, atom.aval), shape)

    def whole(self, operand: Operand, aval: Aval) -> ir.Value:
        """The value of ``operand``, broadcast to the shape of ``aval`` once in this graph."""
        shape = tuple(aval.shape)
        if operand.shape == shape:
            return operand.value
        known = self._broadcast.get((operand.value, shape))
        if known is not None:
            return known
        if adds_first_ones(operand.shape, shape):
            value = self.unsqueeze(operand.value, range(len(shape) - len(operand.shape)))
        else:
            value = self.expand(operand.value, shape)
        self.settle(Operand(value, shape), aval, "broadcast_in_dim")
        self._broadcast[operand.value, shape] = value
        return value

    # -- sizes -------------------------------------------------------------------------------

    def shape_value(self, dims: Sequence[Dim]) -> ir.Value:
        """``dims`` as an int64 vector: a constant, or computed from the inputs' sizes."""
        if not any(is_symbolic(dim) for dim in dims):
            return self.const_i64([int(dim) for dim in dims])
        parts: list[ir.Value] = []
        numbers: list[int] = []
        for dim in dims:
            if not is_symbolic(dim):
                numbers.append(int(dim))
                continue
            if numbers:
                parts.append(self.const_i64(numbers))
                numbers = []
            parts.append(self.symbols.value(dim))
        if numbers:
            parts.append(self.const_i64(numbers))
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def dim_scalar(self, dim: Dim, dtype: np.dtype | ir.DataType = ir.DataType.INT64) -> ir.Value:
        """One dim as a rank-0 value."""
        if not is_symbolic(dim):
            to = dtype.numpy() if isinstance(dtype, ir.DataType) else dtype
            return self.constant(np.asarray(int(dim), dtype=to))
        return self.cast(self.squeeze(self.symbols.value(dim), [0]), dtype)

    def known(self, value: ir.Value) -> np.ndarray | None:
        """The elements of a small constant, None for values that are known only at run time."""
        return self.pool.known.get(value)

    # -- calls and subgraphs -----------------------------------------------------------------

    def inline(
        self, body: compat.ClosedJaxpr | compat.Jaxpr, operands: Sequence[Operand], name: str = ""
    ) -> list[Operand]:
        """Lower ``body`` in place; ``name`` is kept in the origin of its nodes."""
        jaxpr, constants = opened(body)
        outer = self.call
        self.call = outer.inner(self.equation, jaxpr, name)
        try:
            return engine.run(self, jaxpr, constants, operands)
        finally:
            self.call = outer

    def inline_traced(self, fn: Callable[..., Any]) -> list[Operand]:
        """Lower in place what ``fn`` computes of the operands of the equation."""
        structs = tuple(compat.struct(tuple(a.shape), a.dtype) for a in self.avals_in)
        return self.inline(compat.make_jaxpr(fn, structs)[0], self.operands)

    def fresh(self, stem: str) -> str:
        """A name that starts with ``stem``, unlike all others of the model."""
        self.main._count += 1
        return f"{stem}_{self.main._count}"

    @property
    def opset(self) -> int:
        """The ONNX opset that the model is written in."""
        return self.builder.model.opset_imports[""]

    def branch(self, inputs: Sequence[ir.Value] = (), name: str = "body") -> Lowering:
        """A Lowering for a new subgraph with ``inputs``, inside this equation."""
        graph = ir.Graph(list(inputs), [], nodes=[], name=self.fresh(name))
        inner = Lowering(self.builder.below(graph), self.main, self.call)
        inner.equation = self.equation
        return inner

    def finish(self, outputs: Sequence[tuple[ir.Value, Aval]]) -> ir.Graph:
        """The subgraph of this Lowering, which returns ``outputs``, each a result of its own."""
        graph = self.builder.graph
        for value, aval in outputs:
            producer = value.producer()
            if producer is None or producer.graph is not graph or value.is_graph_output():
                value = self.op("Identity", value)  # noqa: PLW2901
                self.settle(Operand(value, tuple(aval.shape)), aval, "body")
            graph.outputs.append(value)
        return graph

    def captured(self, constant: object, aval: Aval) -> Operand:
        """A constant or literal of a jaxpr, in the dtype of ``aval``; large ones are not copied."""
        return Operand(self.pool.captured(constant, aval), tuple(aval.shape))

    # -- the equation ------------------------------------------------------------------------

    @contextmanager
    def at(self, equation: compat.Equation, operands: Sequence[Operand]) -> Iterator[None]:
        """Work on ``equation``; inlined equations nest."""
        saved = vars(self).get("equation"), vars(self).get("operands"), self.builder.origin
        self._enter(equation, operands)
        self.builder.origin = self.main.builder.origin = partial(self.call.origin, equation)
        try:
            yield
        finally:
            self.builder.origin = self.main.builder.origin = saved[2]
            if saved[0] is not None:
                self._enter(saved[0], saved[1] or ())

    def _enter(self, equation: compat.Equation, operands: Sequence[Operand]) -> None:
        self.equation = equation
        self.operands = tuple(operands)
        self.avals_in = tuple(atom.aval for atom in equation.invars)
        self.avals_out = tuple(variable.aval for variable in equation.outvars)

    def settle(self, operand: Operand, aval: Aval, name: str) -> None:
        """Give a result its type from JAX; raises InternalError E910 if it has another."""
        value, dims = operand.value, self.symbols.shape(operand.shape)
        dtype = ir.DataType.from_numpy(np.dtype(aval.dtype))
        if value.dtype is not None and value.dtype != dtype:
            what = f"the lowering of {name!r} gave {value.dtype}, and JAX expects {dtype}"
            raise InternalError("E910", what, at=self.call.place(self.equation))
        if value.shape is not None and not fits(value.shape, dims):
            what = f"the lowering of {name!r} gave shape {value.shape}, and JAX expects {dims}"
            raise InternalError("E910", what, at=self.call.place(self.equation))
        if value.producer() is None:
            return
        if value.dtype is None:
            value.type = ir.TensorType(dtype)
        if value.shape is None or value.shape.dims != dims.dims:
            value.shape = dims

    def unsupported(self, why: str, fix: str = "") -> Unsupported:
        """The error E102 for this equation; ``why`` names the parameter that is not supported."""
        return Unsupported(
            "E102",
            f"this use of primitive {self.equation.primitive.name!r} is not supported",
            at=self.call.place(self.equation),
            why=why,
            fix=fix or "rewrite the call, or compute it outside the traced function",
        )
