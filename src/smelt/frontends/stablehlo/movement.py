"""Read operators that move elements, of static and of symbolic sizes."""

from __future__ import annotations

from typing import Any

from jax import lax

from smelt.frontends.stablehlo.operation import Operation, array_of
from smelt.frontends.stablehlo.registry import reads
from smelt.frontends.stablehlo.sizes import Sizes, as_array


@reads("constant")
def _constant(cx: Any, op: Operation) -> Any:
    """Return the array of the constant."""
    return cx.constant(op, lambda: array_of(op))


@reads("get_dimension_size")
def _dimension_size(cx: Any, op: Operation, x: Any) -> Any:
    """Return one size of ``x``."""
    return Sizes([x.shape[op.integer("dimension")]], op.dtype, ())


@reads("iota")
def _iota(cx: Any, op: Operation) -> Any:
    """Return the index of each element along one dim."""
    return lax.broadcasted_iota(op.dtype, op.shape, op.integer("iota_dimension"))


@reads("dynamic_iota")
def _dynamic_iota(cx: Any, op: Operation, shape: Any) -> Any:
    """Return the index of each element along one dim, for a symbolic shape."""
    return lax.broadcasted_iota(op.dtype, cx.dims(op, shape), op.integer("iota_dimension"))


@reads("broadcast_in_dim")
def _broadcast(cx: Any, op: Operation, x: Any) -> Any:
    """Return ``x`` broadcast to a static shape."""
    return lax.broadcast_in_dim(x, op.shape, op.integers("broadcast_dimensions"))


@reads("dynamic_broadcast_in_dim")
def _dynamic_broadcast(cx: Any, op: Operation, x: Any, shape: Any) -> Any:
    """Return ``x`` broadcast to a symbolic shape."""
    return lax.broadcast_in_dim(x, cx.dims(op, shape), op.integers("broadcast_dimensions"))


@reads("reshape")
def _reshape(cx: Any, op: Operation, x: Any) -> Any:
    """Return ``x`` in a static shape."""
    return lax.reshape(x, op.shape)


@reads("dynamic_reshape")
def _dynamic_reshape(cx: Any, op: Operation, x: Any, shape: Any) -> Any:
    """Return ``x`` in a symbolic shape."""
    return lax.reshape(x, cx.dims(op, shape))


@reads("transpose")
def _transpose(cx: Any, op: Operation, x: Any) -> Any:
    """Return ``x`` with permuted axes."""
    return lax.transpose(x, op.integers("permutation"))


@reads("reverse")
def _reverse(cx: Any, op: Operation, x: Any) -> Any:
    """Return ``x`` with the order of elements reversed along the given axes."""
    return lax.rev(x, op.integers("dimensions"))


@reads("concatenate")
def _concatenate(cx: Any, op: Operation, *operands: Any) -> Any:
    """Return the operands joined along one axis."""
    return lax.concatenate(operands, op.integer("dimension"))


@reads("slice")
def _slice(cx: Any, op: Operation, x: Any) -> Any:
    """Return a slice of ``x`` with constant bounds."""
    start, limit = op.integers("start_indices"), op.integers("limit_indices")
    return lax.slice(x, start, limit, op.integers("strides"))


@reads("real_dynamic_slice")
def _symbolic_slice(cx: Any, op: Operation, x: Any, start: Any, limit: Any, strides: Any) -> Any:
    """Return the slice from ``start`` to ``limit``, which are tensors of sizes.

    If all starts are known, it is a static slice. Else it must be a dynamic slice with symbolic
    sizes, for which JAX writes ``limit = start + sizes``.
    """
    begin = cx.known_dims(start)
    if begin is not None:
        return lax.slice(x, begin, cx.dims(op, limit), cx.dims(op, strides))
    start_value, limit_value = list(op.view.operands)[1:3]
    addends: list[Any] = list(getattr(limit_value.owner, "operands", []))
    if getattr(limit_value.owner, "name", "") != "stablehlo.add" or addends[0] != start_value:
        raise op.unsupported("one of its sizes depends on the values of an input")
    sizes = cx.dims(op, cx.value(addends[1]))
    return lax.dynamic_slice(x, [as_array(start)[i] for i in range(len(sizes))], sizes)


@reads("dynamic_slice")
def _dynamic_slice(cx: Any, op: Operation, x: Any, *starts: Any) -> Any:
    """Return a slice of constant sizes that begins at the computed indices ``starts``."""
    return lax.dynamic_slice(x, starts, op.integers("slice_sizes"))


@reads("dynamic_update_slice")
def _dynamic_update_slice(cx: Any, op: Operation, x: Any, update: Any, *starts: Any) -> Any:
    """Return ``x`` with ``update`` written at the computed indices ``starts``."""
    return lax.dynamic_update_slice(x, update, starts)


@reads("pad")
def _pad(cx: Any, op: Operation, x: Any, value: Any) -> Any:
    """Return ``x`` padded with ``value`` before, after and between its elements."""
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    return lax.pad(x, value, list(zip(*[op.integers(name) for name in names], strict=True)))


@reads("dynamic_pad")
def _dynamic_pad(cx: Any, op: Operation, x: Any, value: Any, *config: Any) -> Any:
    """Return ``x`` padded with ``value``; ``config`` is the low, high and interior padding."""
    columns = [cx.dims(op, numbers) for numbers in config]
    return lax.pad(x, value, list(zip(*columns, strict=True)))
