"""Elementwise kernels: from the operator's row, or own kernels where NumPy differs from ONNX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import ml_dtypes
import numpy as np

from smelt import operators
from smelt.operators.elementwise import ROWS, Row
from smelt.operators.elementwise.arithmetic import power as float_power
from smelt.operators.formula import Arrays, Elementwise
from smelt.targets.host.kernels.kernel import (
    FLOAT8_TYPES,
    Array,
    Call,
    Kernel,
    Step,
    kernel,
    widened,
)


def by_row(op: str) -> Kernel | None:
    """Return the kernel of an operator that has a row in the table of elementwise operators.

    The row gives a ufunc or a NumPy expression. None if there is no row.
    """
    row = ROWS.get(op) or _declared_row(op)
    if row is None:
        return None
    array = row.array
    if isinstance(array, np.ufunc):
        return lambda call: Step(array, in_place=tuple(range(len(call.inputs))))
    return widened(lambda call: _expression(call, row))


def _declared_row(op: str) -> Row | None:
    """Return the row of the declared operator ``domain::name``.

    None if it is not declared as elementwise, or if its row has no NumPy form.
    """
    domain, _, name = op.rpartition("::")
    operator = operators.find(domain, name) if domain else None
    row = operator.row if isinstance(operator, Elementwise) else None
    return row if row is not None and row.array is not None else None


def _expression(call: Call, row: Row) -> Step:
    """Return a step that evaluates a NumPy expression block by block into the output."""
    m = Arrays()

    def block(*arrays: Array) -> None:
        """Write the result of one block of the operands."""
        *operands, out = arrays
        result = m.apply(row, *operands, **call.attributes)
        np.copyto(out, result, casting="unsafe")

    def run(*arrays: Array) -> None:
        """Write the result block by block."""
        in_blocks(block, arrays)

    return Step(run, in_place=tuple(range(len(call.inputs))))


BLOCK = 1 << 15
"""Elements of the result per block, so that temporaries stay in cache."""


def in_blocks(run: Callable[..., None], arrays: Sequence[Array]) -> None:
    """Call ``run`` on blocks of ``arrays``; the last array is the result, the others broadcast."""
    out = arrays[-1]
    if out.size <= BLOCK:
        run(*arrays)
        return
    if out.ndim > 1 and all(a.shape == out.shape and a.flags.c_contiguous for a in arrays):
        in_blocks(run, [array.reshape(-1) for array in arrays])
        return
    axis = next(axis for axis, size in enumerate(out.shape) if size > 1)
    size = out.shape[axis]
    step = max(1, size * BLOCK // out.size)
    for start in range(0, size, step):
        in_blocks(
            run, [_dim_range(array, axis - out.ndim, start, start + step) for array in arrays]
        )


def _dim_range(array: Array, axis: int, start: int, stop: int) -> Array:
    """Return elements ``start`` to ``stop`` of ``array`` along ``axis``, which is negative.

    An array that broadcasts along the axis is returned whole.
    """
    if array.ndim < -axis or array.shape[axis] == 1:
        return array
    return array[(*(slice(None),) * (array.ndim + axis), slice(start, stop))]


@kernel("Max", "Min")
def extreme(call: Call) -> Step:
    """Return the step of an elementwise maximum or minimum, which is NaN if an operand is."""
    choose = np.maximum if call.op == "Max" else np.minimum
    return Step(lambda x, y, out: choose(x, y, out=out), in_place=(0, 1))


@kernel("Relu")
def relu(call: Call) -> Step:
    """Return the step of a maximum with 0; NaN stays NaN."""
    zero = np.zeros((), call.outputs[0].dtype)
    return Step(lambda x, out: np.maximum(x, zero, out=out), in_place=(0,))


@kernel("Div")
def div(call: Call) -> Step:
    """Return the step of a quotient; integers truncate towards zero, which NumPy does not do."""
    if call.outputs[0].dtype.kind not in "iu":
        return Step(np.divide, in_place=(0, 1))
    if call.outputs[0].dtype.kind == "u":
        return Step(np.floor_divide, in_place=(0, 1))

    def truncate(x: Array, y: Array, out: Array) -> None:
        """Write the quotient, rounded towards zero."""
        exact = np.subtract(x, np.fmod(x, y))
        np.floor_divide(exact, y, out)

    return Step(truncate)


@kernel("Mod")
def mod(call: Call) -> Step:
    """Return the step of a remainder; with ``fmod`` it has the sign of the dividend, else of the
    divisor.
    """
    return Step(np.fmod if call.integer("fmod") else np.mod, in_place=(0, 1))


@kernel("Pow")
def power(call: Call) -> Step:
    """Return the step of a power in the base's dtype; integers to a negative power use float64."""
    base, exponent = call.input(0).dtype, call.input(1).dtype
    if base == exponent and base.kind == "f":
        return Step(float_power, in_place=(0, 1))
    are_integers = base.kind in "iu" and exponent.kind in "iu"

    def run(x: Array, y: Array, out: Array) -> None:
        """Write the power; integers with exponents of 0 or more are exact."""
        in_doubles = np.less(y, 0) if are_integers else np.asarray(True)
        if np.any(in_doubles):
            result = float_power(x.astype(np.float64), y.astype(np.float64))
            np.copyto(out, result, casting="unsafe")
        if are_integers:
            exact = np.power(x, np.where(in_doubles, 0, y).astype(x.dtype))
            np.copyto(out, exact, where=~in_doubles, casting="unsafe")

    return Step(run)


@kernel("BitShift")
def bit_shift(call: Call) -> Step:
    """Return the step of a shift; a shift by the width of the type or more gives 0, as in NumPy."""
    left = call.text("direction") == "LEFT"
    return Step(np.left_shift if left else np.right_shift, in_place=(0, 1))


@kernel("Where")
def where(call: Call) -> Step:
    """Return the step that selects elements of two operands by a condition."""

    def run(condition: Array, x: Array, y: Array, out: Array) -> None:
        """Write ``x`` where ``condition`` is true, else ``y``."""
        np.copyto(out, y)
        np.copyto(out, x, where=condition)

    return Step(run, in_place=(2,))


@kernel("Clip")
def clip(call: Call) -> Step:
    """Return the step of a Clip: the upper bound wins if the bounds cross, and NaN stays NaN."""
    dtype = call.outputs[0].dtype
    constants = [call.attributes[name] for name in ("min", "max")]
    fixed_low, fixed_high = (
        None if bound is None else np.asarray(bound, dtype=dtype) for bound in constants
    )

    def run(x: Array, *bounds_and_out: Array | None) -> None:
        """Clip ``x`` by the constant bounds, or by those that are operands."""
        *bounds, out = bounds_and_out
        low = fixed_low if fixed_low is not None else next(iter(bounds), None)
        high = fixed_high if fixed_high is not None else next(iter(bounds[1:]), None)
        if low is None and high is None:
            np.copyto(_present(out), x)
        if low is not None:
            x = np.maximum(x, low, out=_present(out))
        if high is not None:
            np.minimum(x, high, out=_present(out))

    return Step(run, in_place=(0,))


def _present(array: Array | None) -> Array:
    """Return ``array``, an operand that is never absent, for the type checker."""
    assert array is not None
    return array


def _to_powers(x: Array, out: Array, *, saturate: bool) -> None:
    """Write ``x`` as float8e8m0: the power of 2 at or above its magnitude; inf and NaN become NaN.

    A float8e8m0 is the exponent byte of a float32 (bits 23 to 30), where 255 is NaN. The exponent
    is one higher if any bit of the significand is set, which rounds up. With ``saturate``, larger
    values become the largest power. ``ml_dtypes`` cannot be used: it rounds to the nearest power.
    """
    bits = x.astype(np.float32).view(np.uint32)
    exponent = bits >> 23 & 255
    rounded_up = exponent + (bits & 0x7FFFFF > 0)
    rounded_up = np.minimum(rounded_up, 254) if saturate else rounded_up
    np.copyto(out.view(np.uint8), np.where(exponent == 255, 255, rounded_up), casting="unsafe")


@kernel("Cast")
def cast(call: Call) -> Step:
    """Return the step of a Cast.

    A float that becomes an integer is truncated; ONNX leaves values out of range undefined. A cast
    to an 8-bit float goes through float32, and with ``saturate`` clips to the largest value.
    """
    to = call.outputs[0].dtype
    if to == ml_dtypes.float8_e8m0fnu:
        return Step(partial(_to_powers, saturate=bool(call.integer("saturate"))))
    if to not in FLOAT8_TYPES:
        return Step(lambda x, out: np.copyto(out, x, casting="unsafe"))
    largest = float(ml_dtypes.finfo(to).max) if call.integer("saturate") else np.inf

    def run(x: Array, out: Array) -> None:
        """Write ``x`` clamped to the largest number of the type."""
        clipped = np.clip(x.astype(np.float32), -largest, largest)
        np.copyto(out, clipped, casting="unsafe")

    return Step(run)
