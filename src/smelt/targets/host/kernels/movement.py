"""Kernels that move elements: views where NumPy can express them, else copies into the output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Literal

import numpy as np

from smelt.operators.einsum import diagonal
from smelt.program.indexing import pad_crops, slices
from smelt.program.instruction import DIAGONAL, DYNAMIC_EXPAND
from smelt.targets.host.kernels.kernel import Array, Call, Step, View, ViewKernel, kernel, view
from smelt.targets.host.kernels.selected import checked


@view("Transpose")
def transpose_view(call: Call) -> View:
    """Return the function that permutes the strides of an array."""
    perm = call.ints("perm")
    return lambda x: x.transpose(perm)


@view("Reshape")
def reshape_view(call: Call) -> View | None:
    """Return the function that reshapes without a copy; None if the input's strides forbid it.

    A state that a loop passes on with other strides is copied.
    """
    shape = call.outputs[0].shape
    try:
        call.input(0).reshape(shape, copy=False)
    except ValueError:
        return None
    return lambda x: x.reshape(shape)


@view("Expand")
def expand_view(call: Call) -> View | None:
    """Return the function that broadcasts with strides of 0, or reshapes if no element repeats."""
    shape = call.outputs[0].shape
    if prod(shape) == prod(call.input(0).shape):
        return reshape_view(call)
    return lambda x: np.broadcast_to(x, shape)


@view("Slice")
def slice_view(call: Call) -> View:
    """Return the function that slices an array by NumPy's basic indexing."""
    index = slices(call.attributes, call.input(0).shape)
    return lambda x: x[index]


@view(DIAGONAL)
def diagonal_view(call: Call) -> View:
    """Return the function that takes a diagonal, as einsum does for a repeated subscript.

    The diagonal is a view: its stride is the sum of the strides of its dims.
    """
    axes = call.ints("axes")
    return lambda x: diagonal(x, axes)


def _copy(make: ViewKernel) -> Callable[[Call], Step]:
    """Return a kernel that copies the view that ``make`` returns."""

    def prepare(call: Call) -> Step:
        """Return the step that copies the view."""
        make_view = make(call)
        assert make_view is not None
        return Step(lambda x, out: np.copyto(out, make_view(x)))

    return prepare


for _op, _view in (
    *(("Transpose", transpose_view), ("Expand", expand_view), ("Slice", slice_view)),
    (DIAGONAL, diagonal_view),
):
    kernel(_op)(_copy(_view))


@kernel(DYNAMIC_EXPAND)
def dynamic_expand(call: Call) -> Step:
    """Return the step of a broadcast to run-time sizes, which must be those planned (else E670)."""

    def run(x: Array, sizes: Array, out: Array) -> None:
        """Write the broadcast ``x``, after a check of its sizes."""
        requested = tuple(max(int(size), 0) for size in sizes)
        try:
            shape = np.broadcast_shapes(x.shape, requested)
        except ValueError:
            shape = requested
        checked("Expand", shape, out.shape)
        np.copyto(out, x)

    return Step(run)


@kernel("Reshape")
def reshape(call: Call) -> Step:
    """Return the step of a Reshape that could not be a view: it copies in row-major order."""
    shape = call.input(0).shape
    return Step(lambda x, out: np.copyto(out.reshape(shape, copy=False), x))


@kernel("Concat")
def concat(call: Call) -> Step:
    """Return the step of a Concat."""
    axis = call.integer("axis")
    return Step(lambda *arrays: np.concatenate(arrays[:-1], axis, out=arrays[-1]))


@kernel("Tile")
def tile(call: Call) -> Step:
    """Return the step of a Tile, which broadcasts the input over additional dims.

    Sizes [3, 4] with repeats [2, 1] are copied from [1, 3, 1, 4] to [2, 3, 1, 4].
    """
    repeats, shape = call.ints("repeats"), call.input(0).shape
    blocks = tuple(size for pair in zip(repeats, shape, strict=True) for size in pair)
    split_shape = tuple(size for dim in shape for size in (1, dim))

    def run(x: Array, out: Array) -> None:
        """Write ``x`` to each block of ``out``."""
        np.copyto(out.reshape(blocks, copy=False), x.reshape(split_shape))

    return Step(run)


Mode = Literal["reflect", "edge", "wrap"]
MODES: Mapping[str, Mode] = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}


@kernel("Pad")
def pad(call: Call) -> Step:
    """Return the step of a Pad; negative pads crop.

    Mode ``constant`` writes each element once or twice.
    """
    shape = call.input(0).shape
    keep, widths = pad_crops(call.ints("pads"), shape)
    mode = call.text("mode")
    if mode != "constant":
        pad_array = partial(np.pad, pad_width=widths, mode=MODES[mode])
        return Step(lambda x, out: np.copyto(out, pad_array(x[keep])))
    fill = np.asarray(call.attributes["value"]).astype(call.outputs[0].dtype)
    sizes = zip(widths, call.outputs[0].shape, strict=True)
    middle = tuple(slice(low, size - high) for (low, high), size in sizes)

    def run(x: Array, out: Array) -> None:
        """Write the fill value, then the kept part of ``x``."""
        out[...] = fill
        cropped = x[keep]
        if cropped.size:  # empty if one end crops more than the dim
            out[middle] = cropped

    return Step(run)


@kernel("Shape")
def shape_of(call: Call) -> Step:
    """Return the step that writes the shape, which is known when the program is planned."""
    return _constant_step(call.input(0).shape[call.integer("start") : call.integer("end")])


@kernel("Size")
def size_of(call: Call) -> Step:
    """Return the step that writes the number of elements, known when the program is planned."""
    return _constant_step(call.input(0).size)


def _constant_step(value: int | Sequence[int]) -> Step:
    """Return a step that writes ``value``, whatever the elements of its input are."""
    array = np.asarray(value, dtype=np.int64)
    return Step(lambda x, out: np.copyto(out, array))
