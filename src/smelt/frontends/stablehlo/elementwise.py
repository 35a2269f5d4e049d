"""Read elementwise operators of StableHLO and CHLO, and type conversions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from jax import lax

from smelt.frontends.stablehlo import jax_names
from smelt.frontends.stablehlo.operation import Operation
from smelt.frontends.stablehlo.registry import READERS, reads

SAME: Mapping[str, Callable[..., Any]] = {
    **{
        name: getattr(lax, name)
        for name in [
            "abs",
            "add",
            "atan2",
            "cbrt",
            "ceil",
            "clamp",
            "complex",
            "exp",
            "floor",
            "imag",
            "is_finite",
            "logistic",
            "log",
            "max",
            "min",
            "mul",
            "neg",
            "pow",
            "real",
            "rem",
            "rsqrt",
            "select",
            "shift_left",
            "shift_right_arithmetic",
            "shift_right_logical",
            "sign",
            "sqrt",
            "sub",
            "tan",
            "tanh",
        ]
    },
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
    "not": lax.bitwise_not,
    "cosine": lax.cos,
    "sine": lax.sin,
    "count_leading_zeros": lax.clz,
    "divide": lax.div,
    "exponential": lax.exp,
    "exponential_minus_one": lax.expm1,
    "log_plus_one": lax.log1p,
    "maximum": lax.max,
    "minimum": lax.min,
    "multiply": lax.mul,
    "negate": lax.neg,
    "popcnt": lax.population_count,
    "power": lax.pow,
    "remainder": lax.rem,
    "subtract": lax.sub,
    "round_nearest_even": partial(lax.round, rounding_method=lax.RoundingMethod.TO_NEAREST_EVEN),
    "round_nearest_afz": partial(lax.round, rounding_method=lax.RoundingMethod.AWAY_FROM_ZERO),
}
"""StableHLO operators, each with the equivalent JAX function."""

CHLO: Mapping[str, Callable[..., Any]] = {
    **{
        name: getattr(lax, name)
        for name in [
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "bessel_i1e",
            "conj",
            "cosh",
            "digamma",
            "erf",
            "erf_inv",
            "erfc",
            "lgamma",
            "polygamma",
            "sinh",
            "square",
            "tan",
            "zeta",
        ]
    },
    "next_after": lax.nextafter,
}
"""CHLO operators, each with the equivalent JAX function; also composites of these names."""

COMPARISONS = {"EQ": lax.eq, "NE": lax.ne, "LT": lax.lt, "LE": lax.le, "GT": lax.gt, "GE": lax.ge}


def _reader(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reader that calls ``function`` on the operands."""
    return lambda cx, op, *operands: function(*operands)


READERS |= {f"stablehlo.{name}": _reader(function) for name, function in SAME.items()}
READERS |= {f"chlo.{name}": _reader(function) for name, function in CHLO.items()}


@reads("compare")
def _compare(cx: Any, op: Operation, a: Any, b: Any) -> Any:
    """Return a comparison, by the total order of floats if the operation asks for that order.

    JAX has total-order primitives for EQ, LT and LE only; the other directions follow from them.
    """
    direction = op.word("comparison_direction")
    if op.word("compare_type") != "TOTALORDER":
        return COMPARISONS[direction](a, b)
    if direction == "GT":
        return jax_names.TOTAL_ORDER["LT"](b, a)
    if direction == "GE":
        return jax_names.TOTAL_ORDER["LE"](b, a)
    if direction == "NE":
        return lax.bitwise_not(jax_names.TOTAL_ORDER["EQ"](a, b))
    return jax_names.TOTAL_ORDER[direction](a, b)


@reads("convert")
def _convert(cx: Any, op: Operation, x: Any) -> Any:
    """Return ``x`` in another element type."""
    return lax.convert_element_type(x, op.dtype)


@reads("bitcast_convert")
def _bitcast(cx: Any, op: Operation, x: Any) -> Any:
    """Return the bits of ``x`` in another element type."""
    return lax.bitcast_convert_type(x, op.dtype)


@reads("reduce_precision")
def _reduce_precision(cx: Any, op: Operation, x: Any) -> Any:
    """Return ``x`` rounded to fewer exponent and mantissa bits."""
    return lax.reduce_precision(x, op.integer("exponent_bits"), op.integer("mantissa_bits"))


@reads("optimization_barrier")
def _barrier(cx: Any, op: Operation, *operands: Any) -> Any:
    """Return the operands: the barrier only keeps XLA from moving code across it."""
    return list(operands)
