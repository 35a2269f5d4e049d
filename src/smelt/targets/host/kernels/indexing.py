"""Kernels that read or write by index; an index out of range raises IndexError."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from smelt.program.instruction import DYNAMIC_RANGE
from smelt.targets.host.kernels.kernel import Array, Call, Step, kernel
from smelt.targets.host.kernels.selected import checked


@kernel("Gather")
def gather(call: Call) -> Step:
    """Return the step of a Gather by ``np.take``, which wraps negative indices and checks the
    range.
    """
    axis = call.integer("axis")
    return Step(lambda x, index, out: np.copyto(out, np.take(x, index, axis=axis)))


@kernel("GatherElements")
def gather_elements(call: Call) -> Step:
    """Return the step of a GatherElements, with one index for each element of the output."""
    axis = call.integer("axis")
    return Step(lambda x, index, out: np.copyto(out, np.take_along_axis(x, index, axis)))


@kernel("GatherND")
def gather_nd(call: Call) -> Step:
    """Return the step of a GatherND.

    The last dim of the indices addresses the dims after the batch.
    """
    batch_dims = call.integer("batch_dims")

    def run(x: Array, index: Array, out: Array) -> None:
        """Write the slices that ``index`` addresses."""
        np.copyto(out, x[_address(x, index, batch_dims)])

    return Step(run)


def _address(x: Array, index: Array, batch_dims: int) -> tuple[Array, ...]:
    """Return NumPy's advanced indices of the slices of ``x`` that ``index`` addresses.

    Batch dims are addressed by 0, 1, 2, ..., shaped so that they broadcast against ``index``.
    """
    rank = index.ndim - 1
    batch = [
        np.arange(x.shape[dim]).reshape([-1 if i == dim else 1 for i in range(rank)])
        for dim in range(batch_dims)
    ]
    return (*batch, *(index[..., i] for i in range(index.shape[-1])))


REDUCTIONS: Mapping[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _write(reduction: str) -> Callable[[Array, tuple[Array, ...], Array], None]:
    """Return a function that writes or accumulates updates at an address."""
    if reduction == "none":

        def put(out: Array, address: tuple[Array, ...], updates: Array) -> None:
            """Store ``updates`` at ``address``."""
            out[address] = updates

        return put
    return REDUCTIONS[reduction].at


@kernel("ScatterND")
def scatter_nd(call: Call) -> Step:
    """Return the step that copies the data, then sets or combines slices one after another."""
    write = _write(call.text("reduction"))

    def run(x: Array, index: Array, updates: Array, out: Array) -> None:
        """Write ``x`` with ``updates`` at the slices that ``index`` addresses."""
        np.copyto(out, x)
        write(out, _address(out, index, 0), updates)

    return Step(run, in_place=(0,))


@kernel("ScatterElements")
def scatter_elements(call: Call) -> Step:
    """Return the step that copies the data, then sets or combines elements one after another."""
    write, axis = _write(call.text("reduction")), call.integer("axis")

    def run(x: Array, index: Array, updates: Array, out: Array) -> None:
        """Write ``x`` with ``updates`` at the indices along the axis."""
        np.copyto(out, x)
        address: list[Array] = list(np.indices(index.shape, sparse=True))
        address[axis] = index
        write(out, tuple(address), updates)

    return Step(run, in_place=(0,))


@kernel("Range")
def range_(call: Call) -> Step:
    """Return the step that writes ``start + i * delta``, whose number of elements is static."""
    count, dtype = call.outputs[0].shape[0], call.outputs[0].dtype
    numbers = np.arange(count).astype(dtype)
    return Step(lambda start, delta, out: np.add(start, numbers * delta, out, casting="unsafe"))


@kernel(DYNAMIC_RANGE)
def dynamic_range(call: Call) -> Step:
    """Return the step of a Range whose run-time length must be the planned one (else E670)."""
    count_up = range_(call).run

    def run(start: Array, delta: Array, limit: Array, out: Array) -> None:
        """Write the Range, after a check of its length."""
        first, last, step = (array.astype(np.float64) for array in (start, limit, delta))
        count = np.ceil((last - first) / step)
        checked("Range", (max(int(count), 0) if np.isfinite(count) else -1,), out.shape)
        count_up(start, delta, out)

    return Step(run)


@kernel("Trilu")
def trilu(call: Call) -> Step:
    """Return the step that copies the upper or lower triangle and sets the rest to zero."""
    rows, columns = call.input(0).shape[-2:]
    keep = np.tri(rows, columns, call.integer("k") - call.integer("upper"), dtype=bool)
    mask = ~keep if call.integer("upper") else keep

    def run(x: Array, out: Array) -> None:
        """Write ``x`` where the mask is true, 0 elsewhere."""
        out[...] = 0
        np.copyto(out, x, where=mask)

    return Step(run)


@kernel("OneHot")
def one_hot(call: Call) -> Step:
    """Return the step that writes one-hot rows; an index out of range gives a row of off values."""
    axis = call.integer("axis")
    depth = call.outputs[0].shape[axis]
    numbers = np.arange(depth).reshape([-1] + [1] * (call.outputs[0].ndim - 1 - axis))

    def run(index: Array, values: Array, out: Array) -> None:
        """Write the on value where the index equals the position, else the off value."""
        wrapped = np.where(index < 0, index + depth, index)
        lit = np.expand_dims(wrapped, axis) == numbers
        np.copyto(out, np.where(lit, values[1], values[0]))

    return Step(run)
