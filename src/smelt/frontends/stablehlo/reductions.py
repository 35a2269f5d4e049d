"""Read reductions over axes and windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax

from smelt.frontends.stablehlo import jax_names
from smelt.frontends.stablehlo.bodies import only_operator, operators_of
from smelt.frontends.stablehlo.operation import Operation
from smelt.frontends.stablehlo.registry import reads
from smelt.frontends.stablehlo.sizes import as_array

_EXTREMUM = ["compare", "compare", "or", "compare", "compare", "and", "or", "select", "select"]
"""The operators in the body of JAX's ``argmax`` and ``argmin``, in order.

The body selects the first pair of value and index if its value is better or NaN, or if the values
are equal and its index is smaller.
"""


@reads("reduce")
def _reduce(cx: Any, op: Operation, *operands: Any) -> Any:
    """Return the results of a reduction, one for each reduced array.

    A reduction of values and their indices may be JAX's argmax or argmin. One with a single
    operator, such as add, is a named reduction. Any other becomes ``lax.reduce`` with its body.
    """
    count = len(operands) // 2
    arrays, starts = operands[:count], operands[count:]
    axes = op.integers("dimensions")
    region = op.view.regions[0]
    extremum = _extremum(region)
    if extremum and count == 2 and len(axes) == 1 and _is_iota(op.view.operands[1], axes[0]):
        best, index = _EXTREMA[extremum]
        (axis,) = axes
        return [best(arrays[0], axes), index(arrays[0], axis, arrays[1].dtype)]
    operator = only_operator(region) if count == 1 else ""
    if operator in _REDUCTIONS and _is_neutral(operator, starts[0]):
        if operands[0].dtype == np.bool_ and all(arrays[0].shape[axis] == 1 for axis in axes):
            # One element is its own reduction. JAX writes this to check bounds of gathers.
            return lax.squeeze(arrays[0], axes)
        return _REDUCTIONS[operator](arrays[0], axes)

    def combined(accumulated: Any, element: Any) -> Any:
        """Return the body's results for the accumulated values and the next elements."""
        return tuple(cx.run_body(region, [*accumulated, *element]))

    return list(lax.reduce(tuple(arrays), tuple(starts), combined, axes))


_REDUCTIONS = {
    "stablehlo.add": lax.reduce_sum,
    "stablehlo.multiply": lax.reduce_prod,
    "stablehlo.maximum": lax.reduce_max,
    "stablehlo.minimum": lax.reduce_min,
    "stablehlo.and": lax.reduce_and,
    "stablehlo.or": lax.reduce_or,
    "stablehlo.xor": lax.reduce_xor,
}
_EXTREMA = {
    "GT": (lax.reduce_max, lax.argmax),
    "LT": (lax.reduce_min, lax.argmin),
}


def _is_neutral(operator: str, start: Any) -> bool:
    """True if ``start`` is the identity of ``operator``."""
    if not isinstance(start, np.ndarray):
        return False
    dtype = start.dtype
    limits = jax_names.limits(dtype)
    neutral = {
        "stablehlo.add": 0,
        "stablehlo.multiply": 1,
        "stablehlo.maximum": limits[0],
        "stablehlo.minimum": limits[1],
        "stablehlo.and": True if dtype == np.bool_ else -1,
        "stablehlo.or": 0,
        "stablehlo.xor": 0,
    }[operator]
    if operator == "stablehlo.and" and dtype.kind == "u":
        neutral = limits[1]
    return bool(start == np.asarray(neutral).astype(dtype))


def _extremum(region: Any) -> str:
    """Return ``GT`` for the body of argmax, ``LT`` for that of argmin, else an empty string.

    The body's arguments are value, index, value, index. Its operators and its comparisons of
    arguments must be JAX's. For integers, the comparison of a value with itself (``NE`` is true for
    NaN) is missing.
    """
    block = region.blocks[0]
    names = [name.removeprefix("stablehlo.") for name in operators_of(region)]
    arguments = list(block.arguments)
    compared = []  # (direction, number of the first argument, number of the second argument)
    for view in block.operations:
        inner = view.operation
        if inner.name == "stablehlo.compare" and all(x in arguments for x in inner.operands):
            direction = Operation(inner).word("comparison_direction")
            compared.append((direction, *map(arguments.index, inner.operands)))
    names_of_floats = [*_EXTREMUM, "return"]
    names_of_integers = [_EXTREMUM[0], *_EXTREMUM[3:], "return"]
    for direction in _EXTREMA:
        is_better, is_nan = (direction, 0, 2), ("NE", 0, 0)
        breaks_ties = [("EQ", 0, 2), ("LT", 1, 3)]  # equal values: the smaller index wins
        if (names, compared) == (names_of_floats, [is_better, is_nan, *breaks_ties]):
            return direction
        if (names, compared) == (names_of_integers, [is_better, *breaks_ties]):
            return direction
    return ""


def _is_iota(value: Any, axis: int) -> bool:
    """True if ``value`` holds the index of each element along ``axis``."""
    owner = value.owner
    name = getattr(owner, "name", "")
    if name not in ("stablehlo.iota", "stablehlo.dynamic_iota"):
        return False
    return Operation(owner).integer("iota_dimension") == axis


@reads("reduce_window")
def _reduce_window(cx: Any, op: Operation, *operands: Any) -> Any:
    """Return a reduction of one tensor over windows."""
    if len(operands) != 2:
        raise op.unsupported("it reduces several tensors at once")
    x, start = operands
    ones = (1,) * x.ndim
    return window(
        cx,
        op,
        op.view.regions[0],
        (x, start),
        (
            op.integers("window_dimensions"),
            op.integers("window_strides", ones),
            op.table("padding") or [(0, 0)] * x.ndim,
            op.integers("base_dilations", ones),
            op.integers("window_dilations", ones),
        ),
    )


def window(cx: Any, op: Operation, region: Any, operands: Any, sizes: Any) -> Any:
    """Return a reduction over windows by the body ``region``.

    ``operands`` are the array and the start value; ``sizes`` are the window's dims, its strides,
    the padding, the dilation of the array and that of the window.
    """
    x, start = operands
    dims, strides, padding, base, dilation = sizes
    operator = only_operator(region)
    if operator in _CUMULATIVE and _is_neutral(operator, start):
        cumulative_axis = _cumulative_axis(x, dims, padding)
        if cumulative_axis is not None and {*strides, *base, *dilation} == {1}:
            return _CUMULATIVE[operator](x, axis=cumulative_axis[0], reverse=cumulative_axis[1])
    if operator not in _WINDOWS:
        raise op.unsupported("its body is not a sum, product or extremum")
    return lax.reduce_window(
        x,
        as_array(start),
        _WINDOWS[operator],
        tuple(dims),
        tuple(strides),
        [tuple(pair) for pair in padding],
        base_dilation=tuple(base),
        window_dilation=tuple(dilation),
    )


_CUMULATIVE = {
    "stablehlo.add": lax.cumsum,
    "stablehlo.multiply": lax.cumprod,
    "stablehlo.maximum": lax.cummax,
    "stablehlo.minimum": lax.cummin,
}
_WINDOWS = {
    "stablehlo.add": lax.add,
    "stablehlo.multiply": lax.mul,
    "stablehlo.maximum": lax.max,
    "stablehlo.minimum": lax.min,
}


def _cumulative_axis(x: Any, dims: Any, padding: Any) -> tuple[int, bool] | None:
    """Return ``(axis, is reversed)`` of a cumulative reduction; None for other windows.

    JAX exports ``cumsum`` as a window as long as the axis, padded by ``size - 1`` elements before
    the array, or after it if reversed.
    """
    long_axes = [i for i, size in enumerate(dims) if not (isinstance(size, int) and size == 1)]
    if len(long_axes) != 1:
        return None
    (axis,) = long_axes
    other_padding = [tuple(pair) for i, pair in enumerate(padding) if i != axis]
    size = x.shape[axis]
    low, high = padding[axis]
    if any(pair != (0, 0) for pair in other_padding) or dims[axis] != size:
        return None
    if high == 0 and low == size - 1:
        return axis, False
    if low == 0 and high == size - 1:
        return axis, True
    return None


@reads("select_and_scatter")
def _select_and_scatter(cx: Any, op: Operation, x: Any, source: Any, start: Any) -> Any:
    """Return the gradient of max or min pooling; raises Unsupported E102 for other bodies.

    The first body selects an element of each window, the second combines gradients.
    """
    selecting = only_operator(op.view.regions[0])
    combining = only_operator(op.view.regions[1])
    compare = Operation(op.view.regions[0].blocks[0].operations[0])
    select = {"GE": lax.ge_p, "LE": lax.le_p}.get(compare.word("comparison_direction"))
    if selecting != "stablehlo.compare" or combining != "stablehlo.add" or select is None:
        raise op.unsupported("it is not the gradient of max or min pooling")
    ones = (1,) * x.ndim
    return jax_names.select_and_scatter_add(
        source,
        x,
        select,
        op.integers("window_dimensions", ones),
        op.integers("window_strides", ones),
        op.table("padding") or [(0, 0)] * x.ndim,
    )
