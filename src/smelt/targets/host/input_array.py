"""Check and convert the value that a call gives for an input."""

from __future__ import annotations

import numpy as np

from smelt.errors import UsageError
from smelt.program.instruction import Slot
from smelt.targets.host.kernels.kernel import Array


def input_array(slot: Slot, value: Array | None) -> Array:
    """Return ``value`` as a row-major array; it is copied only if it is not dense.

    Raises UsageError E671 for a missing value or another dtype.
    """
    if value is None:
        raise UsageError(
            "E671",
            f"input {slot.name!r} is missing and has no default",
            why="None stands for an input that the model gives a default",
            fix=f"pass an array for {slot.name!r}",
        )
    try:
        array = np.array(value, order="C", copy=None)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(
            "E671",
            f"input {slot.name!r} of type {type(value).__name__} cannot be read as an array",
            why=str(error).partition("\n")[0],
            fix="pass an array of numbers; call the artifact outside of jax.jit and jax.grad, or "
            "through jax.pure_callback, and with tensor.detach()",
        ) from error
    expected = np.dtype(slot.dtype.numpy())
    if array.dtype != expected:
        raise UsageError(
            "E671",
            f"input {slot.name!r} has dtype {array.dtype}, not {expected}",
            fix=f"pass array.astype({str(expected)!r})",
            why="arrays are not converted on the way in",
        )
    return array
