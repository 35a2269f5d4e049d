"""Sizes that each run passes to a compiled program or gets from it, with their bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from smelt.errors import UsageError
from smelt.ir.symbolic_dims.dims import size_of
from smelt.ir.symbolic_dims.solved_dims import solve
from smelt.runtime.interface import Interface, Port

RunBounds: TypeAlias = Mapping[str, tuple[int, int]]
"""The least and greatest size of each dim by name, in the order of the program's parameters."""


def sizes_of(
    interface: Interface, arrays: Sequence[np.ndarray], bounds: RunBounds
) -> dict[str, int]:
    """Return the size of each symbol in ``bounds``, from one array for each input.

    Raises UsageError E670 if sizes disagree or are out of ``bounds``.
    """
    dims = [dim for port in interface.inputs for dim in port.shape or ()]
    solved = solve(dims, [size for array in arrays for size in array.shape])
    sizes = {name: size for name, size in solved.items() if name in bounds}
    for port, array in zip(interface.inputs, arrays, strict=True):
        expected_shape = tuple(size_of(dim, sizes) for dim in port.shape or ())
        if expected_shape != array.shape:
            raise UsageError(
                "E670",
                f"input {port.name!r} of shape {list(array.shape)} does not fit {port}",
                why=f"the other inputs have {_listed(sizes)}",
                fix="give inputs whose dims of one name have one size",
            )
    for name, size in sizes.items():
        low, high = bounds[name]
        if not low <= size <= high:
            raise UsageError(
                "E670",
                f"the size {name}={size} is not from {low} to {high}",
                why="memory is planned for the sizes that the model was compiled for",
                fix=f"give smaller inputs, or compile with --dim {name}={min(low, size)}.."
                f"{max(high, size)}",
            )
    return sizes


def _listed(sizes: Mapping[str, int]) -> str:
    """Return sizes as text."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def shape_in(port: Port, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of ``port`` in a run with these ``sizes``."""
    return tuple(int(str(size_of(dim, sizes))) for dim in port.shape or ())
