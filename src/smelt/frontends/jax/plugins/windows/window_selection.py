"""Lower primitives that select one element of each window and read or update it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, Jaxpr
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.plugins.indexing.padding import padded
from smelt.frontends.jax.plugins.programs.creation import counted
from smelt.frontends.jax.plugins.windows.monoids import identity
from smelt.frontends.jax.plugins.windows.windows import Window, padded_shape, patches, window_of
from smelt.frontends.jax.registry import lowers

INT64 = np.dtype(np.int64)

SCATTERED = {"add": "add", "add_any": "add", "mul": "mul", "max": "max", "min": "min"}

NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)

Padding = Sequence[tuple[Dim, Dim]]


@lowers("select_and_gather_add")
def select_and_gather_add(
    cx: Lowering,
    tangents: ir.Value,
    operand: ir.Value,
    *,
    select_prim: Any,
    window_dimensions: Sequence[Dim],
    window_strides: Sequence[int],
    padding: Padding,
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> ir.Value:
    """Return the tangent of the element that each window selects; 0 if it selects none.

    A window selects no element if none exceeds the lowest number.
    """
    window = window_of(cx, window_dimensions, window_strides, padding, window_dilation)
    test = str(select_prim.name)
    cells = _cells(cx, operand, _lowest(cx, test), window, base_dilation)
    values = _cells(cx, tangents, cx.const_like(0, tangents), window, base_dilation)
    column = (*cx.avals_out[0].shape, 1)
    cells = cx.op("Concat", cx.expand(_lowest(cx, test), column), cells, axis=-1)
    zero_column = cx.expand(cx.const_like(0, tangents), column)
    values = cx.op("Concat", zero_column, values, axis=-1)
    # The initial value counts as an element, padding does not.
    inside = cx.op("Expand", cx.constant(np.asarray(True)), cx.op("Shape", operand))
    valid = _cells(cx, inside, cx.constant(np.asarray(False)), window, base_dilation)
    valid = cx.op("Concat", cx.expand(cx.constant(np.asarray(True)), column), valid, axis=-1)
    return _elements_at(
        cx, values, _selected_positions(cx, cells, test, prod(window.sizes) + 1, valid)
    )


@lowers("select_and_scatter_add")
def select_and_scatter_add(
    cx: Lowering,
    source: ir.Value,
    operand: ir.Value,
    *,
    select_prim: Any,
    window_dimensions: Sequence[Dim],
    window_strides: Sequence[int],
    padding: Padding,
) -> ir.Value:
    """Add each source element at the index of the element that its window selects."""
    window = window_of(cx, window_dimensions, window_strides, padding, [1] * len(padding))
    indices = _selected_indices(cx, operand, window, str(select_prim.name), cx.avals_in[1].shape)
    return _scattered(cx, source, cx.const_like(0, source), indices, window, "add")


@lowers("select_and_scatter")
def select_and_scatter(
    cx: Lowering,
    operand: ir.Value,
    source: ir.Value,
    initial: ir.Value,
    *,
    select_jaxpr: Jaxpr,
    select_consts: Sequence[Any],
    scatter_jaxpr: Jaxpr,
    scatter_consts: Sequence[Any],
    window_dimensions: Sequence[Dim],
    window_strides: Sequence[int],
    padding: Padding,
) -> ir.Value:
    """Combine each source element with ``initial`` at the index that its window selects.

    Refuses to select or combine by a computation of more than one primitive.
    """
    window = window_of(cx, window_dimensions, window_strides, padding, [1] * len(padding))
    test = _single_primitive(select_jaxpr)
    reduction = SCATTERED.get(_single_primitive(scatter_jaxpr))
    if test not in ("ge", "gt", "le", "lt"):
        raise cx.unsupported("it selects by a function of its own")
    if reduction is None:
        raise cx.unsupported("it scatters by a function of its own")
    indices = _selected_indices(cx, operand, window, test, cx.avals_in[0].shape)
    return _scattered(cx, source, initial, indices, window, reduction)


def _single_primitive(jaxpr: Jaxpr) -> str:
    """Return the name of the primitive if ``jaxpr`` is that primitive alone, else ""."""
    if len(jaxpr.eqns) != 1 or list(jaxpr.eqns[0].invars) != list(jaxpr.invars):
        return ""
    return str(jaxpr.eqns[0].primitive.name)


def _lowest(cx: Lowering, test: str) -> ir.Value:
    """Return the fill value for padding, which every element beats in the comparison ``test``.

    It is -inf for ``ge`` and ``gt``, which select the greatest element, else inf.
    """
    name = "max" if test.startswith("g") else "min"
    return cx.constant(identity(name, np.dtype(cx.avals_in[0].dtype)))


def _cells(
    cx: Lowering, x: ir.Value, fill: ir.Value, window: Window, base_dilation: Sequence[int]
) -> ir.Value:
    """Return ``[*windows, window elements]`` of ``x``, padded with ``fill``."""
    config, shape = window.config(base_dilation), cx.avals_in[0].shape
    x = padded(cx, x, fill, shape, config)
    return patches(cx, x, window, cx.avals_out[0].shape)


def _selected_positions(
    cx: Lowering, cells: ir.Value, test: str, count: int, valid: ir.Value | None = None
) -> ir.Value:
    """Return the position in its window of the element that each window selects.

    XLA scans a window in order and keeps a choice. A ``valid`` element replaces the choice unless
    the comparison ``test(choice, element)`` is true. So the final choice is the extreme element,
    and the last of equal ones if the comparison is strict (``gt``, ``lt``). Every comparison with
    NaN is false, so NaN replaces the choice and is replaced: the scan restarts after the last NaN.
    """
    if cells.dtype is None or not cells.dtype.is_floating_point():
        raise cx.unsupported("it selects among integers")
    cells = cx.cast(cells, ir.DataType.FLOAT) if cells.dtype in NARROW else cells
    selects_greatest = test.startswith("g")
    arg_attributes: dict[str, Any] = {
        "axis": -1,
        "keepdims": 1,
        "select_last_index": int(test in ("gt", "lt")),
    }
    op_type = "ArgMax" if selects_greatest else "ArgMin"
    positions = cx.constant(np.arange(count))
    nan = cx.op("Where", cx.op("IsNaN", cells), positions, cx.const_i64(-1))
    last_nan = cx.op("ReduceMax", nan, cx.const_i64([-1]), keepdims=1)
    eligible = cx.op("Greater", positions, last_nan)
    eligible = eligible if valid is None else cx.op("And", eligible, valid)
    worst = cx.const_like(-np.inf if selects_greatest else np.inf, cells)
    best = cx.op(op_type, cx.op("Where", eligible, cells, worst), **arg_attributes)
    # If all remaining elements equal the fill value, their order still matters.
    best_is_eligible = cx.op("GatherElements", eligible, best, axis=-1)
    first_eligible = cx.op("ArgMax", cx.cast(eligible, ir.DataType.INT32), **arg_attributes)
    best = cx.op("Where", best_is_eligible, best, first_eligible)
    any_eligible = cx.op("GatherElements", eligible, best, axis=-1)
    return cx.op("Where", any_eligible, best, last_nan)


def _elements_at(cx: Lowering, cells: ir.Value, positions: ir.Value) -> ir.Value:
    """Return the element of each window at its entry of ``positions``."""
    return cx.squeeze(cx.op("GatherElements", cells, positions, axis=-1), [-1])


def _selected_indices(
    cx: Lowering, operand: ir.Value, window: Window, test: str, shape: Sequence[Dim]
) -> ir.Value:
    """Return the index of each window's selected element in the flattened padded operand."""
    config = window.config([1] * len(shape))
    sizes, outer = padded_shape(shape, config), _window_counts(cx)
    x = padded(cx, operand, _lowest(cx, test), shape, config)
    positions = _selected_positions(cx, patches(cx, x, window, outer), test, prod(window.sizes))
    numbers = cx.reshape(counted(cx, prod(sizes), INT64), sizes)
    return _elements_at(cx, patches(cx, numbers, window, outer), positions)


def _window_counts(cx: Lowering) -> Sequence[Dim]:
    """Return the number of windows per dim: the shape of the source."""
    first = cx.equation.primitive.name == "select_and_scatter_add"
    return tuple(cx.avals_in[0 if first else 1].shape)


def _scattered(
    cx: Lowering,
    source: ir.Value,
    initial: ir.Value,
    indices: ir.Value,
    window: Window,
    reduction: str,
) -> ir.Value:
    """Return ``initial``, combined with each element of ``source`` at its index in ``indices``."""
    assert source.dtype is not None
    dtype = ir.DataType.FLOAT if source.dtype in NARROW else source.dtype
    shape = cx.avals_out[0].shape
    sizes = padded_shape(shape, window.config([1] * len(shape)))
    data = cx.expand(cx.cast(initial, dtype), [prod(sizes)])
    updates = cx.op("Reshape", cx.cast(source, dtype), cx.const_i64([-1]))
    flat_indices = cx.op("Reshape", indices, cx.const_i64([-1]))
    data = cx.op("ScatterElements", data, flat_indices, updates, axis=0, reduction=reduction)
    padded_result = cx.cast(cx.reshape(data, sizes), source.dtype)
    crop = [(-low, -high, 0) for low, high in window.pads]
    return padded(cx, padded_result, initial, sizes, crop)
