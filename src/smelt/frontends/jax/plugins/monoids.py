"""Associative computations, as ``reduce`` and its kin take them: applied to whole arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax import engine
from smelt.frontends.jax.compat import Aval, ClosedJaxpr, Jaxpr, evaluated, pointwise
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.plugins.arithmetic import EXTREMES, extreme

BOOL = ir.DataType.BOOL

OPERATORS = {
    "add": ("Add", "Or"),
    "mul": ("Mul", "And"),
    "and": ("BitwiseAnd", "And"),
    "or": ("BitwiseOr", "Or"),
    "xor": ("BitwiseXor", "Xor"),
}
"""The ONNX operators of a monoid, for numbers and for booleans; extremes are apart."""

WIDER = {
    ir.DataType.INT8: ir.DataType.INT32,
    ir.DataType.INT16: ir.DataType.INT32,
    ir.DataType.UINT8: ir.DataType.INT32,
    ir.DataType.UINT16: ir.DataType.INT32,
    ir.DataType.FLOAT16: ir.DataType.FLOAT,
    ir.DataType.BFLOAT16: ir.DataType.FLOAT,
}
"""Types that few runtimes compute in; integers wrap to the same bits when cast back."""

SAMPLES = 64


@dataclass(frozen=True)
class Monoid:
    """``body`` combines two groups of scalars into one; ``name`` is its primitive, if it is one."""

    name: str
    body: ClosedJaxpr | None = None

    def combine(
        self, cx: Lowering, left: Sequence[Operand], right: Sequence[Operand]
    ) -> list[Operand]:
        """``left`` before ``right``, element by element; all have one shape."""
        shape = left[0].shape
        if self.name:
            return [Operand(operate(cx, self.name, left[0].value, right[0].value), shape)]
        assert self.body is not None
        spread = pointwise(self.body, shape)
        engine.check_supported(spread.jaxpr)
        results = cx.inline(spread, [*left, *right])
        avals = [variable.aval for variable in spread.jaxpr.outvars]
        return [
            Operand(cx.whole(result, aval), tuple(aval.shape))
            for result, aval in zip(results, avals, strict=True)
        ]

    def widened(self, dtype: ir.DataType) -> ir.DataType:
        """The type to compute in; a computation of its own gets its operands as they are."""
        return WIDER.get(dtype, dtype) if self.name else dtype


def operate(cx: Lowering, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """The monoid ``name`` on two arrays."""
    if name in EXTREMES:
        return extreme(cx, name, a, b)
    return cx.op(OPERATORS[name][a.dtype == BOOL], a, b)


def monoid(cx: Lowering, jaxpr: Jaxpr | ClosedJaxpr, constants: Sequence[Any] = ()) -> Monoid:
    """The monoid that ``jaxpr`` computes; refused unless it is associative."""
    closed = jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, list(constants))
    name = _primitive(closed.jaxpr)
    if not name and not _is_associative(closed):
        raise cx.unsupported("the computation is not associative, so its order would matter")
    return Monoid(name, closed)


def _primitive(jaxpr: Jaxpr) -> str:
    """The monoid that the only equation of ``jaxpr`` computes; empty for others."""
    while len(jaxpr.eqns) == 1 and len(jaxpr.invars) == 2:
        (equation,) = jaxpr.eqns
        if set(equation.invars) != set(jaxpr.invars) or jaxpr.outvars != equation.outvars:
            return ""
        name = str(equation.primitive.name)
        avals: list[Aval] = [atom.aval for atom in (*jaxpr.invars, *jaxpr.outvars)]
        same = len({aval.dtype for aval in avals}) == 1
        if (name in OPERATORS or name in EXTREMES) and same:
            return name
        if name not in ("jit", "pjit"):
            return ""
        jaxpr = equation.params["jaxpr"].jaxpr
    return ""


def identity(name: str, dtype: np.dtype) -> np.ndarray:
    """What leaves every element as it is."""
    if name in ("add", "or", "xor"):
        return np.zeros((), dtype)
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


def is_neutral(monoid: Monoid, initial: Sequence[np.ndarray]) -> bool:
    """Whether ``initial``, before or after any sample, leaves it as it is."""
    if monoid.name:
        return bool(np.all(initial[0] == identity(monoid.name, initial[0].dtype)))
    assert monoid.body is not None
    samples = _samples(monoid.body, 1)[0]
    neutral = [np.full(SAMPLES, start, start.dtype) for start in initial]
    before = evaluated(monoid.body, [*neutral, *samples])
    after = evaluated(monoid.body, [*samples, *neutral])
    return _agree(before, samples) and _agree(after, samples)


def _is_associative(body: ClosedJaxpr) -> bool:
    a, b, c = _samples(body, 3)
    left = evaluated(body, [*evaluated(body, [*a, *b]), *c])
    right = evaluated(body, [*a, *evaluated(body, [*b, *c])])
    return _agree(left, right)


def _samples(body: ClosedJaxpr, groups: int) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(0)
    dtypes = [np.dtype(variable.aval.dtype) for variable in body.jaxpr.outvars]
    return [[_sample(rng, dtype) for dtype in dtypes] for _ in range(groups)]


def _sample(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "b":
        return rng.integers(0, 2, SAMPLES).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -9, 10, SAMPLES).astype(dtype)
    return rng.standard_normal(SAMPLES).astype(dtype)


def _agree(left: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> bool:
    """Equal up to the rounding of a few operations."""
    for a, b in zip(left, right, strict=True):
        if a.dtype.kind in "biu":
            same = np.array_equal(a, b)
        else:
            near = 2e-2 if a.dtype.itemsize == 2 else 1e-4
            left_wide, right_wide = a.astype(np.float64), b.astype(np.float64)
            same = np.allclose(left_wide, right_wide, rtol=near, atol=near, equal_nan=True)
        if not same:
            return False
    return True
