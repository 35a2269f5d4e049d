"""Computations by which ``reduce`` and its variants combine elements, applied to whole arrays.

A monoid is associative and has a known identity; it is recognized by its jaxpr. Any other
computation is folded in XLA's order on a CPU: the initial value, then one element after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import onnx_ir as ir

from smelt.frontends.jax import support
from smelt.frontends.jax.compat import (
    Aval,
    ClosedJaxpr,
    Jaxpr,
    Literal,
    evaluated,
    make_jaxpr,
    pointwise,
    same_computation,
    struct,
)
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.plugins.elementwise.arithmetic import EXTREMES, extreme

BOOL = ir.DataType.BOOL

OPERATORS = {
    "add": ("Add", "Or"),
    "mul": ("Mul", "And"),
    "and": ("BitwiseAnd", "And"),
    "or": ("BitwiseOr", "Or"),
    "xor": ("BitwiseXor", "Xor"),
}
"""The ONNX operators of a monoid, for numbers and for booleans; ``EXTREMES`` holds max and min."""

WIDER = {
    ir.DataType.INT8: ir.DataType.INT32,
    ir.DataType.INT16: ir.DataType.INT32,
    ir.DataType.UINT8: ir.DataType.INT32,
    ir.DataType.UINT16: ir.DataType.INT32,
    ir.DataType.FLOAT16: ir.DataType.FLOAT,
    ir.DataType.BFLOAT16: ir.DataType.FLOAT,
}
"""Wider types to compute in, because few runtimes compute in the narrow type.

Cast back, integers wrap to the same bits.
"""

TRIALS = 64
"""How many random elements test whether a computation is associative or commutative."""


@dataclass(frozen=True)
class Monoid:
    """A computation that combines two tuples of scalars into one.

    ``names`` are the primitives that combine the first, second, ... scalars of both tuples. Without
    names, the jaxpr ``body`` combines them. ``neutral`` is the identity, None if it is unknown;
    then the computation may not be associative.
    """

    names: tuple[str, ...] = ()
    body: ClosedJaxpr | None = None
    neutral: tuple[np.ndarray, ...] | None = None

    @property
    def is_known(self) -> bool:
        """True if elements may be combined in any grouping."""
        return self.neutral is not None

    def combine(
        self, cx: Lowering, left: Sequence[Operand], right: Sequence[Operand]
    ) -> list[Operand]:
        """Return ``left`` combined with ``right``, element by element; all have the same shape."""
        shape = left[0].shape
        if self.names:
            rows = zip(self.names, left, right, strict=True)
            return [Operand(operate(cx, name, a.value, b.value), shape) for name, a, b in rows]
        assert self.body is not None
        mapped = pointwise(self.body, shape)
        support.check_supported(mapped.jaxpr)
        results = cx.inline(mapped, [*left, *right])
        avals = [variable.aval for variable in mapped.jaxpr.outvars]
        return [
            Operand(cx.broadcast(result, aval), tuple(aval.shape))
            for result, aval in zip(results, avals, strict=True)
        ]

    def widened(self, dtype: ir.DataType) -> ir.DataType:
        """Return the type in which elements of ``dtype`` are combined.

        Only named primitives are computed in a wider type; a ``body`` keeps its elements' type.
        """
        return WIDER.get(dtype, dtype) if self.names else dtype

    def wide(self, cx: Lowering, x: ir.Value) -> ir.Value:
        """Return ``x`` cast to the type in which its elements are combined."""
        assert x.dtype is not None
        return cx.cast(x, self.widened(x.dtype))


def of_primitive(name: str, dtype: np.dtype) -> Monoid:
    """Return the monoid of a primitive on elements of ``dtype``."""
    return Monoid((name,), neutral=(identity(name, dtype),))


def operate(cx: Lowering, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """Return the monoid ``name`` applied to two arrays."""
    if name in EXTREMES:
        return extreme(cx, name, a, b)
    return cx.op(OPERATORS[name][a.dtype == BOOL], a, b)


def monoid(jaxpr: Jaxpr | ClosedJaxpr, constants: Sequence[Any] = ()) -> Monoid:
    """Return the computation of ``jaxpr``; its identity is known if ``jaxpr`` is a known monoid."""
    closed = jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, list(constants))
    dtypes = [np.dtype(variable.aval.dtype) for variable in closed.jaxpr.outvars]
    names = _primitives(closed.jaxpr)
    if names:
        pairs = zip(names, dtypes, strict=True)
        return Monoid(names, closed, tuple(identity(name, dtype) for name, dtype in pairs))
    floats = len(dtypes) == 1 and jnp.issubdtype(dtypes[0], jnp.floating)
    if floats and same_computation(closed, logaddexp(dtypes[0]).body):
        return logaddexp(dtypes[0])
    return Monoid((), closed)


def logaddexp(dtype: np.dtype) -> Monoid:
    """Return the monoid ``log(exp(a) + exp(b))``."""
    pair = (struct((), dtype), struct((), dtype))
    body = make_jaxpr(jnp.logaddexp, pair)[0]
    return Monoid((), body, (np.asarray(-np.inf).astype(dtype),))


def _primitives(jaxpr: Jaxpr) -> tuple[str, ...]:
    """Return, for each output, the primitive that combines its two inputs.

    Empty if ``jaxpr`` computes anything else. A single jitted call is looked into.
    """
    inputs, outputs = list(jaxpr.invars), list(jaxpr.outvars)
    if len(jaxpr.eqns) == 1 and str(jaxpr.eqns[0].primitive.name) in ("jit", "pjit"):
        (call,) = jaxpr.eqns
        same = list(call.invars) == inputs and list(call.outvars) == outputs
        return _primitives(call.params["jaxpr"].jaxpr) if same else ()
    count = len(outputs)
    producers = {equation.outvars[0]: equation for equation in jaxpr.eqns}
    if len(inputs) != 2 * count or len(producers) != count or len(jaxpr.eqns) != count:
        return ()
    names = []
    for left, right, output in zip(inputs[:count], inputs[count:], outputs, strict=True):
        equation = None if isinstance(output, Literal) else producers.get(output)
        if equation is None or equation.invars not in ([left, right], [right, left]):
            return ()
        name = str(equation.primitive.name)
        avals: list[Aval] = [atom.aval for atom in (left, right, output)]
        dtypes = {aval.dtype for aval in avals}
        if (name not in OPERATORS and name not in EXTREMES) or len(dtypes) > 1:
            return ()
        names.append(name)
    return tuple(names)


def identity(name: str, dtype: np.dtype) -> np.ndarray:
    """Return the identity element of primitive ``name`` as an array of rank 0.

    For floats under add it is -0, because 0 + -0 is 0.
    """
    if name in ("add", "or", "xor"):
        zero = np.zeros((), dtype)
        return zero if dtype.kind in "biu" else np.asarray(-zero)
    if name == "mul":
        return np.ones((), dtype)
    if dtype.kind == "b":
        return np.asarray(name in ("min", "and"))
    if name == "and":
        return np.asarray(-1).astype(dtype)
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        return np.asarray(bounds.min if name == "max" else bounds.max, dtype)
    return np.asarray(-np.inf if name == "max" else np.inf).astype(dtype)


def is_neutral(reducer: Monoid, initial: Sequence[np.ndarray | None]) -> bool:
    """True if the initial values equal the identity bit by bit.

    None stands for a value that is known only at run time.
    """
    if reducer.neutral is None:
        return False
    pairs = zip(initial, reducer.neutral, strict=True)
    return all(
        start is not None and start.dtype == neutral.dtype and start.tobytes() == neutral.tobytes()
        for start, neutral in pairs
    )


def check_order(cx: Lowering, reducer: Monoid, *, grouped: bool, moved: bool) -> None:
    """Refuse a computation whose result depends on an order that XLA does not keep.

    JAX requires that the order does not matter. XLA folds elements in groups (``grouped``), or
    moves them past each other (``moved``). Random numbers serve as counterexamples; if there is no
    counterexample, the elements are combined in order.
    """
    if reducer.body is None or reducer.is_known:
        return
    body = reducer.body
    a, b, c = _trials(body)

    def combined(left: list[np.ndarray], right: list[np.ndarray]) -> list[np.ndarray]:
        """Return ``left`` combined with ``right`` by the body."""
        return list(evaluated(body, [*left, *right]))

    laws = []
    if grouped:
        laws.append(("associative", combined(combined(a, b), c), combined(a, combined(b, c))))
    if moved:
        laws.append(("commutative", combined(a, b), combined(b, a)))
    for law, result, other_result in laws:
        if not _agree_up_to_rounding(result, other_result):
            raise cx.unsupported(f"the computation is not {law}, and XLA keeps no order here")


def _trials(body: ClosedJaxpr) -> list[list[np.ndarray]]:
    """Return three random operands of ``body``, each with one array per output."""
    rng = np.random.default_rng(0)
    dtypes = [np.dtype(variable.aval.dtype) for variable in body.jaxpr.outvars]
    return [[_trial(rng, dtype) for dtype in dtypes] for _ in range(3)]


def _trial(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    """Return ``TRIALS`` random elements of ``dtype``; integers are below 10."""
    if dtype.kind == "b":
        return rng.integers(0, 2, TRIALS).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -9, 10, TRIALS).astype(dtype)
    return rng.standard_normal(TRIALS).astype(dtype)


def _agree_up_to_rounding(left: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> bool:
    """True if both results are equal up to the rounding of a few operations.

    Integers and bools must be equal.
    """
    for left_array, right_array in zip(left, right, strict=True):
        if left_array.dtype.kind in "biu":
            is_equal = np.array_equal(left_array, right_array)
        else:
            tolerance = 2e-2 if left_array.dtype.itemsize == 2 else 1e-4
            left_wide, right_wide = left_array.astype(np.float64), right_array.astype(np.float64)
            is_equal = np.allclose(
                left_wide, right_wide, rtol=tolerance, atol=tolerance, equal_nan=True
            )
        if not is_equal:
            return False
    return True
