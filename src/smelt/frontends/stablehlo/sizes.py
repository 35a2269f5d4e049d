"""Follow sizes of tensors, which StableHLO computes with integer operators like other numbers.

An exported function with symbolic sizes reads the sizes of its inputs, computes with them and
passes the results as shapes. Here these numbers are JAX dims (``Sizes``). They become an array
where an operator combines them with other numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import core

from smelt.frontends.jax import compat
from smelt.frontends.stablehlo import jax_names
from smelt.frontends.stablehlo.operation import Operation

LONGEST = 64
"""Tensors of more elements are not treated as sizes."""

ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "stablehlo.add": lambda a, b: a + b,
    "stablehlo.subtract": lambda a, b: a - b,
    "stablehlo.multiply": lambda a, b: a * b,
    "stablehlo.maximum": core.max_dim,
    "stablehlo.minimum": core.min_dim,
}
"""Operators that act on dims as on integers."""


class Sizes:
    """Sizes in a tensor of ``shape``, row by row; each is an int or a symbolic dim."""

    def __init__(self, dims: Any, dtype: np.dtype, shape: tuple[int, ...]) -> None:
        """Hold ``dims``, numbers or symbolic expressions, as an array of ``shape``."""
        self.dims: tuple[Any, ...] = tuple(dims)
        self.dtype = dtype
        self.shape = shape

    def array(self) -> Any:
        """Return the sizes as an array."""
        if all(isinstance(dim, int) for dim in self.dims):
            array: Any = np.asarray(self.dims, self.dtype)
        else:
            arrays = [jax_names.dim_value(dim) for dim in self.dims]
            array = jnp.stack([jax.lax.convert_element_type(x, self.dtype) for x in arrays])
        return array.reshape(self.shape)


def as_array(value: Any) -> Any:
    """Return ``value`` as an operand of a primitive."""
    return value.array() if isinstance(value, Sizes) else value


def as_sizes(value: Any) -> Sizes | None:
    """Return ``value`` as Sizes: Sizes themselves, or a small integer array of NumPy; else None.

    Arrays of NumPy are known while the module is evaluated; arrays of JAX are results of the model.
    """
    if isinstance(value, Sizes):
        return value
    if not isinstance(value, np.ndarray) or value.size > LONGEST:
        return None
    if value.dtype not in (np.int32, np.int64):
        return None
    return Sizes(value.reshape(-1).tolist(), value.dtype, value.shape)


def computed_sizes(op: Operation, operands: Sequence[Any]) -> Any:
    """Return the result of an operator whose operands are known sizes; None for other operators.

    The result is an array of NumPy if all its sizes are numbers, else Sizes. Reshapes and
    broadcasts of a single number have a result, too, for any element type.
    """
    is_reshape = op.name in ("stablehlo.reshape", "stablehlo.broadcast_in_dim")
    number = operands[0] if operands and isinstance(operands[0], np.ndarray) else None
    if is_reshape and number is not None and number.size == np.prod(op.shape) == 1:
        return operands[0].reshape(op.shape)
    if op.name in _CHOICES:
        return _CHOICES[op.name](operands)
    sizes = [as_sizes(operand) for operand in operands]
    known_sizes = [operand for operand in sizes if operand is not None]
    if not operands or len(known_sizes) < len(sizes):
        return None
    if op.name == "stablehlo.compare":
        return _compared(op, known_sizes[0], known_sizes[1])
    dims = _dims_of(op, known_sizes)
    dtype, shape = op.dtype, op.shape
    if dims is None or dtype not in (np.int32, np.int64) or len(dims) != np.prod(shape):
        return None
    if any(isinstance(dim, int) and abs(dim) > np.iinfo(dtype).max for dim in dims):
        return None
    result = Sizes(dims, dtype, shape)
    return result.array() if all(isinstance(dim, int) for dim in dims) else result


def _dims_of(op: Operation, operands: Sequence[Sizes]) -> list[Any] | None:
    """Return the sizes that an integer operator computes from sizes; None for other operators."""
    first = list(operands[0].dims)
    dim_pairs = list(zip(first, operands[-1].dims, strict=False))
    match op.name:
        case "stablehlo.reshape" | "stablehlo.convert":
            return first
        case "stablehlo.broadcast_in_dim" if len(first) == np.prod(op.shape):
            return first
        case "stablehlo.concatenate" if op.integer("dimension") == 0:
            return [dim for operand in operands for dim in operand.dims]
        case "stablehlo.negate":
            return [-dim for dim in first]
        case "stablehlo.sign" if all(map(_is_positive, first)):
            return [1 for _ in first]
        case "stablehlo.divide" | "stablehlo.remainder" if all(
            map(_floors_like_truncation, dim_pairs)
        ):
            return [
                left // right if op.name == "stablehlo.divide" else left % right
                for left, right in dim_pairs
            ]
        case name if name in ARITHMETIC:
            return [ARITHMETIC[name](left, right) for left, right in dim_pairs]
    return None


def _is_positive(dim: Any) -> bool:
    """True if ``dim`` is at least 1 at all sizes."""
    return holds(lambda: dim >= 1)


def _floors_like_truncation(pair: tuple[Any, Any]) -> bool:
    """True if the quotient of the pair is the same truncated and rounded down.

    StableHLO truncates; dims of JAX round down.
    """
    return isinstance(pair[1], int) and pair[1] > 0 and holds(lambda: pair[0] >= 0)


def holds(question: Callable[[], Any]) -> bool:
    """True if ``question``, a comparison of dims, is true at all sizes."""
    try:
        return bool(question())
    except compat.InconclusiveDim:
        return False


def _compared(op: Operation, a: Sizes, b: Sizes) -> Any:
    """Return a comparison of two sizes as a bool array; None if it differs between sizes."""
    if len(a.dims) != 1 or len(b.dims) != 1:
        return None
    is_true, is_false = _DECISIONS[op.word("comparison_direction")]
    (a_size,), (b_size,) = a.dims, b.dims
    if holds(lambda: is_true(a_size, b_size)):
        return np.full(op.shape, True)
    return np.full(op.shape, False) if holds(lambda: is_false(a_size, b_size)) else None


def _conjunction(operands: Sequence[Any]) -> Any:
    """Return the conjunction of scalar bools; None if a symbolic operand decides it."""
    truths = [
        operand
        for operand in operands
        if isinstance(operand, np.ndarray) and operand.dtype == bool and operand.ndim == 0
    ]
    if any(not truth for truth in truths):
        return np.asarray(False)
    return np.asarray(True) if len(truths) == len(operands) else None


def _selected_operand(operands: Sequence[Any]) -> Any:
    """Return the operand that a known scalar condition selects; None for other conditions."""
    condition, *values = operands
    if isinstance(condition, np.ndarray) and condition.ndim == 0:
        return values[0] if condition else values[1]
    return None


_CHOICES: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "stablehlo.and": _conjunction,
    "stablehlo.select": _selected_operand,
}
"""Operators with which JAX corrects a quotient of sizes after a comparison of sizes.

Their operands are bools, so ``_dims_of`` does not apply to them.
"""

_DECISIONS: Mapping[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "GE": (operator.ge, operator.lt),
    "GT": (operator.gt, operator.le),
    "LE": (operator.le, operator.gt),
    "LT": (operator.lt, operator.ge),
    "EQ": (lambda a, b: a == b, lambda a, b: a > b or a < b),
    "NE": (lambda a, b: a > b or a < b, lambda a, b: a == b),
}
"""For each direction: ``(condition for True, condition for False)`` on two sizes.

Both conditions can be undecided for symbolic sizes.
"""
